//! Makes plans of a record while it grows, and writes them.
//!
//! A plan is made each time that there are twice as many requests as the last time, and at the end; so a program that
//! is killed leaves one, too. A thread of low priority makes it, of a copy of the record. Knows no kind of memory.
//!
//! Invariant: the file is whole at every moment, and no plan of fewer requests replaces one of more that was made for the
//! same run, whichever process wrote it.

use std::fmt;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pinbuddy_plan::Options;
use pinbuddy_plan::file::MadeFor;

use super::ToRecord;
use super::unusable::text;
use crate::backing::background;
use crate::log;

/// The first plan is made of so many requests.
const FIRST: usize = 256;

/// How long planning takes at most while the program runs, and at its end.
const PATIENCE: Duration = Duration::from_secs(60);
const LAST_PATIENCE: Duration = Duration::from_secs(3);

/// What a plan can be made of.
pub(crate) trait Plannable: Clone + Send + 'static {
    /// What is made of it.
    type Plan: Made;

    /// How many requests it has.
    fn requests(&self) -> usize;

    /// Its plan. Asks `stop` whether to end with the best so far.
    fn planned(&self, options: &Options, stop: &(dyn Fn() -> bool + Sync)) -> Self::Plan;
}

/// A plan that can be written.
pub(crate) trait Made {
    /// Of how many requests the plan in this text is; `None` if there is none that was made for this run.
    fn requests_in(text: &str, run: &MadeFor) -> Option<usize>;

    /// Writes the text of its file.
    fn write(&self, out: &mut io::BufWriter<fs::File>) -> io::Result<()>;

    /// What it is, in a few words.
    fn summary(&self) -> String;
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Planner {
    target: Arc<Target>,
    run: MadeFor,
    /// Whether a thread makes a plan.
    at_work: Arc<AtomicBool>,
    /// Requests of the last plan, and of the next.
    planned: usize,
    next: usize,
}

impl Planner {
    /// Of a run that is recorded.
    pub(crate) fn new(recorded: ToRecord) -> Self {
        let ToRecord { path, run, above } = recorded;
        Self {
            target: Arc::new(Target::new(path)),
            run,
            at_work: Arc::default(),
            planned: above,
            next: FIRST.max(above.saturating_add(1)),
        }
    }

    /// Requests from so many bytes on are planned.
    pub(crate) fn threshold(&self) -> u64 {
        self.run.threshold
    }

    /// Whether a record of so many requests is to be planned.
    pub(crate) fn is_due(&self, requests: usize) -> bool {
        requests >= self.next
    }

    /// From how many requests on that is so.
    pub(crate) fn due_at(&self) -> usize {
        self.next
    }

    /// Whether a thread makes a plan.
    pub(crate) fn is_at_work(&self) -> bool {
        self.at_work.load(Ordering::Acquire)
    }

    /// Whether there is a plan of a record of so many requests, and no thread makes one.
    pub(crate) fn is_done(&self, requests: usize) -> bool {
        !self.is_at_work() && requests <= self.planned
    }

    /// Has a thread make a plan of a record of so many requests or more, which `copy` copies in that thread, unless a thread is at
    /// work.
    pub(crate) fn in_a_thread<R: Plannable>(
        &mut self,
        requests: usize,
        copy: impl FnOnce() -> R + Send + 'static,
    ) {
        if self.at_work.swap(true, Ordering::AcqRel) {
            return;
        }
        self.next = requests.saturating_mul(2);
        let run = self.run.clone();
        let target = Arc::clone(&self.target);
        let at_work = Arc::clone(&self.at_work);
        let work = move || {
            background::enter();
            make(&copy(), run, &target, PATIENCE);
            at_work.store(false, Ordering::Release);
        };
        let thread = thread::Builder::new().name("pinbuddy-planner".to_owned());
        match thread.spawn(work) {
            Ok(_) => self.planned = requests,
            // The next plan is made later, or at the end.
            Err(_) => self.at_work.store(false, Ordering::Release),
        }
    }

    /// The record is complete.
    pub(crate) fn end(&self, record: &impl Plannable) {
        // The process does not wait for a thread that is making one.
        if !self.is_done(record.requests()) {
            make(record, self.run.clone(), &self.target, LAST_PATIENCE);
        }
    }
}

/// Makes the plan and writes it.
fn make<R: Plannable>(record: &R, run: MadeFor, target: &Target, patience: Duration) {
    let began = Instant::now();
    let options = Options {
        made_for: run,
        threads: 1,
        ..Options::default()
    };
    let made = record.planned(&options, &|| began.elapsed() > patience);
    let requests_in = |text: &str| R::Plan::requests_in(text, &options.made_for);
    match target.replace(record.requests(), requests_in, |out| made.write(out)) {
        Ok(false) => {}
        Ok(true) => log::info(|| format!("{} was written to {target}", made.summary())),
        Err(why) => log::warn(|| format!("the plan could not be written to {target}: {why}")),
    }
}

/// The file. A thread may still write it when the process ends and writes it as well.
#[derive(Debug)]
struct Target {
    path: PathBuf,
    /// Of so many requests is the plan that was written last. Locked while one is written.
    requests: Mutex<usize>,
}

impl Target {
    fn new(path: PathBuf) -> Self {
        let requests = Mutex::default();
        Self { path, requests }
    }

    /// Replaces the file with the plan of so many requests that `write_to` writes; false, and nothing is done, where the
    /// plan there is one of more, as `requests_in` reads its text.
    fn replace(
        &self,
        requests: usize,
        requests_in: impl Fn(&str) -> Option<usize>,
        write_to: impl FnOnce(&mut io::BufWriter<fs::File>) -> io::Result<()>,
    ) -> io::Result<bool> {
        let lock = self.requests.lock();
        let mut last = lock.unwrap_or_else(PoisonError::into_inner);
        // Processes that are no ranks of one run share a file: a short one must not have the last word.
        let there = text(&self.path).ok().flatten();
        let there = there.and_then(|it| requests_in(&it)).unwrap_or(0);
        if there.max(*last) > requests {
            return Ok(false);
        }
        write(&self.path, write_to)?;
        *last = requests;
        Ok(true)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

/// Replaces the file at once with what `text` writes.
fn write(
    path: &Path,
    text: impl FnOnce(&mut io::BufWriter<fs::File>) -> io::Result<()>,
) -> io::Result<()> {
    let (beside, file) = create_beside(path)?;
    let written = (|| {
        let mut out = io::BufWriter::new(file);
        text(&mut out)?;
        out.flush()?;
        out.get_ref().sync_all()?;
        fs::rename(&beside, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// A new file in the same folder that only this user reads. Its name cannot be foretold, and it is never written through
/// a link that somebody else has put there.
fn create_beside(path: &Path) -> io::Result<(PathBuf, fs::File)> {
    // The standard library's one source of random numbers.
    let random = RandomState::new().build_hasher().finish();
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{random:016x}.tmp"));
    let beside = path.with_file_name(name);
    let mut options = fs::OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    options.open(&beside).map(|file| (beside, file))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use pinbuddy_plan::Plan;
    use pinbuddy_plan::record::{Event, Record};

    use super::*;

    fn record(requests: u64) -> Record {
        let mut record = Record::new(1000);
        for id in 1..=requests {
            record.push(Event::Request {
                id,
                bytes: 1 << 20,
                lane: 0,
            });
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
        planner.in_a_thread(record.requests(), move || copy);
        planner.end(&record);
        let plan = Plan::read(&fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(plan.facts.requests, FIRST as u64);
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
}
