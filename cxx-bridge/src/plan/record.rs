//! Makes a plan of what is recorded, and writes it.
//!
//! The plan is made each time that there are twice as many requests as the last time, and at the end; so a program that
//! is killed leaves one, too. A thread of low priority makes it, of a copy of the record.
//!
//! Invariants: memory is bounded by [`MOST_EVENTS`]; the file is whole at every moment, and no plan of fewer requests
//! replaces one of more.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pinbuddy_plan::file::MadeFor;
use pinbuddy_plan::record::{Event as Recorded, Record};
use pinbuddy_plan::{Options, plan};

use crate::backing::background;
use crate::log::{self, Bytes};
use crate::record::{Event, Sink, What};

/// So many events are recorded; with them, less than 100 MiB are in use.
pub(crate) const MOST_EVENTS: u32 = 2_000_000;

/// The first plan is made of so many requests.
pub(crate) const FIRST: usize = 256;

/// How long planning takes at most while the program runs, and at its end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const LAST_PATIENCE: Duration = Duration::from_secs(3);

/// The file. A thread may still write it when the process ends and writes it as well.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    /// Of so many requests is the plan that was written last. Locked while one is written.
    requests: Mutex<usize>,
}

impl Target {
    pub(crate) fn new(path: PathBuf) -> Self {
        let requests = Mutex::default();
        Self { path, requests }
    }

    /// Replaces the file with the plan of so many requests that `text` writes; false, and nothing is done, where the
    /// plan there is one of more.
    pub(crate) fn replace(
        &self,
        requests: usize,
        text: impl FnOnce(&mut io::BufWriter<fs::File>) -> io::Result<()>,
    ) -> io::Result<bool> {
        let lock = self.requests.lock();
        let mut last = lock.unwrap_or_else(PoisonError::into_inner);
        if *last > requests {
            return Ok(false);
        }
        write(&self.path, text)?;
        *last = requests;
        Ok(true)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Recording {
    record: Record,
    target: Arc<Target>,
    run: MadeFor,
    /// By thread.
    lanes: HashMap<u32, u32>,
    /// Requests of the last plan.
    planned: usize,
    next: usize,
    /// Events were dropped: what comes after that is not recorded.
    is_torn: bool,
    /// Whether a thread makes a plan.
    at_work: Arc<AtomicBool>,
}

impl Recording {
    /// Nothing recorded yet.
    pub fn new(path: PathBuf, run: MadeFor) -> Self {
        log::info(|| format!("this run is recorded for a plan in {}", path.display()));
        Self {
            record: Record::new(MOST_EVENTS),
            target: Arc::new(Target::new(path)),
            run,
            lanes: HashMap::new(),
            planned: 0,
            next: FIRST,
            is_torn: false,
            at_work: Arc::default(),
        }
    }

    fn push(&mut self, what: What) {
        let event = match what {
            What::Request { private: true, .. } => return,
            What::Request { bytes, .. } if bytes < self.run.threshold.max(1) => return,
            What::Request {
                id, bytes, thread, ..
            } => {
                let many = self.lanes.len() as u32;
                let lane = *self.lanes.entry(thread).or_insert(many);
                Recorded::Request { id, bytes, lane }
            }
            What::Iteration => Recorded::Iteration,
            What::Clear => Recorded::Clear,
            what => match what.over() {
                Some(id) => Recorded::Over { id },
                None => return,
            },
        };
        self.record.push(event);
    }

    fn plan_in_a_thread(&mut self) {
        if self.at_work.swap(true, Ordering::AcqRel) {
            return;
        }
        self.planned = self.record.len();
        self.next = self.planned.saturating_mul(2);
        let (record, run) = (self.record.clone(), self.run.clone());
        let target = Arc::clone(&self.target);
        let at_work = Arc::clone(&self.at_work);
        let work = move || {
            background::enter();
            make(&record, run, &target, PATIENCE);
            at_work.store(false, Ordering::Release);
        };
        let thread = thread::Builder::new().name("pinbuddy-planner".to_owned());
        if thread.spawn(work).is_err() {
            // The next plan is made later, or at the end.
            self.at_work.store(false, Ordering::Release);
        }
    }
}

impl Sink for Recording {
    fn event(&mut self, event: Event) {
        if !self.is_torn {
            self.push(event.what);
        }
    }

    fn lost(&mut self, events: u64) {
        if !self.is_torn {
            log::warn(|| {
                format!("{events} events were lost: the plan is made of what was recorded before")
            });
        }
        self.is_torn = true;
    }

    fn pause(&mut self) {
        if self.record.len() >= self.next {
            self.plan_in_a_thread();
        }
    }

    fn wants_more(&self) -> bool {
        !self.is_torn && !self.record.is_full()
    }

    fn end(&mut self) {
        // A plan that another thread is making is not of all requests.
        if self.record.len() > self.planned {
            make(&self.record, self.run.clone(), &self.target, LAST_PATIENCE);
        }
    }
}

/// Makes the plan and writes it.
fn make(record: &Record, run: MadeFor, target: &Target, patience: Duration) {
    let began = Instant::now();
    let options = Options {
        made_for: run,
        threads: 1,
    };
    let mut made = plan(record, &options, &|| began.elapsed() > patience);
    made.facts.seconds = began.elapsed().as_secs_f64();
    match target.replace(record.len(), |out| made.write(out)) {
        Ok(false) => {}
        Ok(true) => log::info(|| {
            let (size, slots) = (Bytes(made.reserved()), made.slots.len());
            format!("a plan of {size} and {slots} slots was written to {target}")
        }),
        Err(why) => log::warn(|| format!("the plan could not be written to {target}: {why}")),
    }
}

/// Replaces the file at once with what `text` writes.
fn write(
    path: &Path,
    text: impl FnOnce(&mut io::BufWriter<fs::File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = (|| {
        let mut options = fs::OpenOptions::new();
        // Not through a link that somebody else has put there.
        let file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)?;
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

#[cfg(test)]
mod tests {
    use pinbuddy_plan::Plan;

    use super::*;

    fn record(requests: u64) -> Record {
        let mut record = Record::new(1000);
        for id in 1..=requests {
            record.push(Recorded::Request {
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
