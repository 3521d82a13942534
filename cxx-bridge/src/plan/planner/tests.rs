//! Who may replace which plan, and that a file is whole at every moment.

use std::os::unix::fs::MetadataExt as _;
use std::thread;

use pinbuddy_events::Op;
use pinbuddy_plan::Plan;
use pinbuddy_plan::record::Record;
use pinbuddy_store::{Key, Role};

use super::*;
use crate::alone;

fn record(requests: u64) -> Record {
    let mut record = Record::new(10_000);
    for id in 1..=requests {
        record.push(Op::request(id, 1 << 20));
    }
    record
}

fn run() -> MadeFor {
    MadeFor { torch: "2.15.0".to_owned(), world_size: 1, rank: 0, threshold: 1 << 20 }
}

/// Makes the plan of a run of so many requests.
fn write(requests: u64, target: &Target) {
    make(&record(requests), run(), target, LAST_PATIENCE, Instant::now() + LAST_OF_ALL);
}

/// Of how many requests the plan at this place is.
fn requests_at(place: &Place) -> u64 {
    let text = fs::read_to_string(&place.path).unwrap();
    Plan::read(body(&text)).unwrap().facts.requests
}

#[test]
fn a_process_that_ends_later_does_not_replace_the_plan_of_a_longer_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    let ends = |requests, run: MadeFor| {
        let planner = Planner::new(ToRecord::new(path.clone(), run));
        planner.end(&record(requests));
        let text = fs::read_to_string(&path).unwrap();
        Plan::read(&text).unwrap().facts.requests
    };
    assert_eq!([8, 3, 9].map(|it| ends(it, run())), [8, 8, 9]);
    let other = MadeFor { torch: "2.11.0".to_owned(), ..run() };
    assert_eq!(ends(2, other), 2, "this run cannot use that one");
    fs::write(&path, "{").unwrap();
    assert_eq!(ends(1, run()), 1);
}

type Stop<'t> = &'t (dyn Fn() -> bool + Sync);

/// A record that is searched so, and whose plan is tried for so long.
#[derive(Clone)]
struct Searched {
    record: Record,
    search: fn(&Record, &Options, Stop<'_>) -> Plan,
    trial: Duration,
    why_none: Option<&'static str>,
}

impl Searched {
    fn new(requests: u64, search: fn(&Record, &Options, Stop<'_>) -> Plan) -> Self {
        Self { record: record(requests), search, trial: Duration::ZERO, why_none: None }
    }
}

impl Plannable for Searched {
    type Plan = Plan;

    fn requests(&self) -> usize {
        self.record.requests()
    }

    fn trial(&self) -> Duration {
        self.trial
    }

    fn planned(&self, options: &Options, stop: Stop<'_>) -> Plan {
        (self.search)(&self.record, options, stop)
    }

    fn why_none(&self, _: &Plan) -> Option<&'static str> {
        self.why_none
    }
}

#[test]
fn the_end_of_the_process_has_a_plan_though_a_thread_is_at_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    let mut planner = Planner::new(ToRecord::new(path.clone(), run()));
    // In a thread of the planner's it takes for ever.
    let record = Searched::new(FIRST as u64, |record, options, stop| {
        while thread::current().name() == Some("pinbuddy-planner") {
            thread::park();
        }
        record.planned(options, stop)
    });
    let copy = record.clone();
    planner.job(record.requests()).unwrap().start(move || copy);
    planner.end(&record);
    let plan = Plan::read(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(plan.facts.requests, FIRST as u64);
}

#[test]
fn a_search_leaves_time_for_the_trial_of_what_it_finds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    let record = Searched::new(4, |record, options, stop| {
        assert!(stop(), "a trial would end too late");
        record.planned(options, stop)
    });
    // Longer than anybody waits.
    let record = Searched { trial: LAST_PATIENCE, ..record };
    Planner::new(ToRecord::new(path.clone(), run())).end(&record);
    assert!(path.exists());
}

/// It fitted the beginning alone: the unchanged program reserved more with it than without one, and went out of memory.
#[test]
fn a_plan_of_a_runs_beginning_does_not_stay_where_no_plan_of_all_is_found_in_time() {
    let folder = tempfile::tempdir().unwrap();
    const NOTHING: &str = "nothing came again";
    let cut = Searched::new(WHOLE, |_, _, stop| {
        while !stop() {}
        Plan::default()
    });
    let cut = &Searched { why_none: Some(NOTHING), ..cut };
    // It was over before anybody was asked.
    let whole = &Searched { search: |_, _, _| Plan::default(), ..cut.clone() };
    for (search, early, why) in [
        (cut, WHOLE / 4, Some(NO_TIME)),
        (cut, WHOLE / 2 - 1, Some(NO_TIME)),
        (cut, WHOLE / 2, None),
        (whole, WHOLE / 2, Some(NOTHING)),
    ] {
        let target = Target::new(Place::named(folder.path().join("run.plan")));
        let _ = fs::remove_file(&target.place.path);
        write(early, &target);
        make(search, run(), &target, Duration::ZERO, Instant::now());
        let text = fs::read_to_string(&target.place.path).unwrap();
        assert_eq!(Plan::read(&text).is_ok(), why.is_none(), "{early}: {text}");
        let found = NoPlan::read(&text, &run()).map(|it| it.unwrap().why);
        assert_eq!(found.as_deref(), why, "{early}: {text}");
    }
}

#[test]
fn a_thread_that_is_late_leaves_no_half_of_a_plan_behind_a_process_that_could_not_write_one() {
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("later");
    let mut planner = Planner::new(ToRecord::new(none.join("plan.json"), run()));
    let _at_work = planner.job(4).unwrap();
    planner.end(&record(4));
    fs::create_dir(&none).unwrap();
    write(8, &planner.target);
    assert_eq!(fs::read_dir(none).unwrap().count(), 0);
}

/// As where a disk is full: each is refused.
#[test]
fn plans_that_cannot_be_written_cost_one_line() {
    const VARIABLE: &str = "PINBUDDY_TEST_NO_FOLDER";
    if let Some(path) = std::env::var_os(VARIABLE) {
        let target = Target::new(Place::named(path.into()));
        return [1, 2, 4].into_iter().for_each(|requests| write(requests, &target));
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "plan::planner::tests::plans_that_cannot_be_written_cost_one_line";
    let said = alone::run(test, VARIABLE, folder.path().join("none/run.plan"));
    assert_eq!(said.matches("the plan could not be written to").count(), 1, "{said}");
}

#[test]
fn what_is_beside_the_plan_is_private_and_has_another_name_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    let (first, file) = create_beside(&path).unwrap();
    let (second, _) = create_beside(&path).unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
    assert_eq!(first.parent(), second.parent());
    assert_ne!(first, second);
    let own = std::process::id().to_string();
    for name in [&first, &second] {
        let name = name.file_name().unwrap().to_str().unwrap();
        assert_eq!(name.len(), "plan.json.0123456789abcdef.tmp".len());
        assert!(!name.contains(&format!(".{own}.")), "{name}");
    }
}

#[test]
fn a_thousand_first_starts_at_once_leave_one_file_of_a_role_that_is_whole_at_every_moment() {
    let folder = tempfile::tempdir().unwrap();
    let (began, over) = (Instant::now(), AtomicBool::new(false));
    let roles = [Role::First, Role::Other];
    let place = |role| Place::in_folder(folder.path(), "train", role);
    thread::scope(|scope| {
        let reads = scope.spawn(|| {
            let mut seen = 0;
            while !over.load(Ordering::Relaxed) {
                for role in roles {
                    if let Ok(found) = fs::read_to_string(place(role).path) {
                        Plan::read(body(&found)).unwrap();
                        assert!(Key::read(&found).is_some_and(|it| it.role == role));
                        seen += 1;
                    }
                }
            }
            seen
        });
        let start = |first: u64| {
            for number in (first..1000).step_by(20) {
                let target = Target::new(place(roles[usize::from(number % 8 != 0)]));
                write(1 + number % 5, &target);
            }
        };
        let starts: Vec<_> = (0..20).map(|first| scope.spawn(move || start(first))).collect();
        starts.into_iter().for_each(|it| it.join().unwrap());
        over.store(true, Ordering::Relaxed);
        assert!(reads.join().unwrap() > 0);
    });
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(names.len(), 2, "{names:?}");
    for role in roles {
        let found = fs::metadata(place(role).path).unwrap();
        assert_eq!(found.mode() & 0o777, 0o600);
        // Which of two that replace it in the same moment is left is chance; later ones see what is there.
        [5, 4].into_iter().for_each(|requests| write(requests, &Target::new(place(role))));
        assert_eq!(requests_at(&place(role)), 5, "the longest run's");
    }
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[test]
fn a_file_that_came_meanwhile_and_is_no_plan_stays() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results.json");
    fs::write(&results, r#"{"loss": 1}"#).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&results, &link).unwrap();
    for path in [&results, &link] {
        let mut planner = Planner::new(ToRecord::new(path.clone(), run()));
        planner.replace_any();
        planner.end(&record(9));
        assert_eq!(fs::read_to_string(path).unwrap(), r#"{"loss": 1}"#);
    }
    let dangling = folder.path().join("dangling");
    std::os::unix::fs::symlink(folder.path().join("nowhere"), &dangling).unwrap();
    let target = Target::new(Place::named(dangling));
    let why = target.replace(1, |_| None, |_| Ok(())).unwrap_err().to_string();
    assert!(why.contains("a symbolic link") && why.ends_with("remove the link"), "{why}");
    let late = folder.path().join("late");
    let target = Target::new(Place::named(late.clone()));
    let why = target.replace(1, |_| None, |_| fs::write(&late, "results")).unwrap_err().to_string();
    assert!(why.contains("no plan came there") && fs::read_to_string(&late).unwrap() == "results", "{why}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "and nothing is left beside them");
}

#[test]
fn a_slow_writer_of_a_shorter_run_finds_the_longer_ones_plan_before_it_replaces_it() {
    let folder = tempfile::tempdir().unwrap();
    for place in [Place::named(folder.path().join("run.plan")), Place::in_folder(folder.path(), "train", Role::First)] {
        let (slow, other) = (Target::new(place.clone()), Target::new(place.clone()));
        let in_between = |out: &mut io::BufWriter<fs::File>| {
            write(9, &other);
            writeln!(out, "a plan of three requests")
        };
        let there = |text: &str| Plan::requests_in(text, &run());
        assert!(!slow.replace(3, there, in_between).unwrap());
        assert_eq!(requests_at(&place), 9);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_kept_plan_has_its_key_before_it_and_one_of_as_many_requests_stays_but_not_another_keys_or_half_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::in_folder(folder.path(), "train", Role::First);
    // What a process left behind that was killed as it wrote.
    let left = place.path.with_extension("plan.0123456789abcdef.tmp");
    fs::File::create(&left).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let writes = |requests| {
        write(requests, &Target::new(place.clone()));
        fs::metadata(&place.path).unwrap().ino()
    };
    let first = writes(8);
    assert!(!left.exists());
    assert_eq!(Key::read(&fs::read_to_string(&place.path).unwrap()).unwrap().program, "train");
    assert_eq!((requests_at(&place), writes(8)), (8, first));
    assert_ne!(writes(9), first);
    // Copied by hand.
    let other = Place::in_folder(folder.path(), "serve", Role::First);
    fs::copy(&place.path, &other.path).unwrap();
    write(3, &Target::new(other.clone()));
    assert_eq!(requests_at(&other), 3);
}

#[test]
fn a_kept_plans_folder_is_made_with_it_and_one_that_cannot_be_is_tried_once() {
    let folder = tempfile::tempdir().unwrap();
    let later = folder.path().join("later");
    let target = Target::new(Place::in_folder(&later, "train", Role::First));
    fs::write(&later, "in the way").unwrap();
    write(8, &target);
    fs::remove_file(&later).unwrap();
    write(9, &target);
    assert!(!later.exists());
    let target = Target::new(target.place);
    write(9, &target);
    assert_eq!(requests_at(&target.place), 9);
}

#[test]
fn a_link_of_a_named_file_stays_and_one_in_a_kept_ones_place_is_replaced_itself() {
    let folder = tempfile::tempdir().unwrap();
    let named = Place::named(folder.path().join("link"));
    let kept = Place::in_folder(folder.path(), "train", Role::First);
    for (place, stays) in [(named, true), (kept, false)] {
        let file = folder.path().join(format!("file of {stays}"));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &place.path).unwrap();
        write(8, &Target::new(place.clone()));
        assert_eq!(place.path.is_symlink(), stays);
        assert_eq!(fs::read(&file).unwrap().is_empty(), !stays);
        assert_eq!(requests_at(&place), 8);
    }
}
