//! Who may replace which plan, and that a file is whole at every moment.

use std::os::unix::fs::MetadataExt as _;
use std::thread;

use pinbuddy_events::Op;
use pinbuddy_plan::Plan;
use pinbuddy_plan::record::Record;

use super::*;

fn record(requests: u64) -> Record {
    let mut record = Record::new(1000);
    for id in 1..=requests {
        record.push(Op::request(id, 1 << 20));
    }
    record
}

fn run() -> MadeFor {
    MadeFor {
        torch: "2.15.0".to_owned(),
        world_size: 1,
        rank: 0,
        threshold: 1 << 20,
    }
}

#[test]
fn a_thread_that_is_late_does_not_replace_the_plan_of_the_whole_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    let target = Target::new(path);
    let written = |requests| {
        make(&record(requests), run(), &target, LAST_PATIENCE);
        let text = fs::read_to_string(&target.path).unwrap();
        Plan::read(&text).unwrap().facts.requests
    };
    assert_eq!([8, 3, 9].map(written), [8, 8, 9]);
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
    let other = MadeFor {
        torch: "2.11.0".to_owned(),
        ..run()
    };
    assert_eq!(ends(2, other), 2, "this run cannot use that one");
    fs::write(&path, "{").unwrap();
    assert_eq!(ends(1, run()), 1);
}

#[test]
fn a_run_that_is_recorded_beside_a_plan_replaces_it_only_if_it_is_long() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    let mut to_record = ToRecord::new(path.clone(), run());
    to_record.above = 12;
    let planner = Planner::new(to_record);
    assert!(!planner.is_due(FIRST - 1) && planner.is_due(FIRST));
    planner.end(&record(12));
    assert!(!path.exists());
    planner.end(&record(13));
    assert!(path.exists());
}

/// Whose plan takes for ever in a thread of the planner's.
#[derive(Clone)]
struct Slow(Record);

impl Plannable for Slow {
    type Plan = Plan;

    fn requests(&self) -> usize {
        self.0.requests()
    }

    fn planned(&self, options: &Options, stop: &(dyn Fn() -> bool + Sync)) -> Plan {
        if thread::current().name() == Some("pinbuddy-planner") {
            loop {
                thread::park();
            }
        }
        self.0.planned(options, stop)
    }
}

#[test]
fn the_end_of_the_process_has_a_plan_though_a_thread_is_at_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    let mut planner = Planner::new(ToRecord::new(path.clone(), run()));
    let record = Slow(record(FIRST as u64));
    let copy = record.clone();
    planner.job(record.requests()).unwrap().start(move || copy);
    planner.end(&record);
    let plan = Plan::read(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(plan.facts.requests, FIRST as u64);
}

#[test]
fn a_thread_that_is_late_leaves_no_half_of_a_plan_behind_a_process_that_could_not_write_one() {
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("later");
    let mut planner = Planner::new(ToRecord::new(none.join("plan.json"), run()));
    let _at_work = planner.job(4).unwrap();
    planner.end(&record(4));
    fs::create_dir(&none).unwrap();
    make(&record(8), run(), &planner.target, LAST_PATIENCE);
    assert_eq!(fs::read_dir(none).unwrap().count(), 0);
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
fn two_that_write_at_once_leave_a_plan_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    let target = Target::new(path);
    thread::scope(|scope| {
        for requests in 1..5 {
            let target = &target;
            scope.spawn(move || make(&record(requests), run(), target, LAST_PATIENCE));
        }
    });
    let text = fs::read_to_string(&target.path).unwrap();
    assert_eq!(Plan::read(&text).unwrap().facts.requests, 4);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
