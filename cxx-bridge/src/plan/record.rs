//! Makes a plan of what is recorded, and writes it.
//!
//! The plan is made each time that there are twice as many requests as the last time, and at the end; so a program that
//! is killed leaves one, too. A thread of low priority makes it, of a copy of the record.
//!
//! Invariants: memory is bounded by [`MOST_EVENTS`]; the file is whole at every moment.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// See the module's documentation.
#[derive(Debug)]
pub struct Recording {
    record: Record,
    path: PathBuf,
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
            path,
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
            What::Request { bytes, .. } if bytes < self.run.threshold.max(1) => return,
            What::Request { id, bytes, thread } => {
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
        let (record, run, path) = (self.record.clone(), self.run.clone(), self.path.clone());
        let at_work = Arc::clone(&self.at_work);
        let work = move || {
            background::enter();
            make(&record, run, &path, PATIENCE);
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
            make(&self.record, self.run.clone(), &self.path, LAST_PATIENCE);
        }
    }
}

/// Makes the plan and writes it.
fn make(record: &Record, run: MadeFor, path: &Path, patience: Duration) {
    let began = Instant::now();
    let options = Options {
        made_for: run,
        threads: 1,
    };
    let mut made = plan(record, &options, &|| began.elapsed() > patience);
    made.facts.seconds = began.elapsed().as_secs_f64();
    let at = path.display();
    match write(path, |out| made.write(out)) {
        Ok(()) => log::info(|| {
            let (size, slots) = (Bytes(made.reserved()), made.slots.len());
            format!("a plan of {size} and {slots} slots was written to {at}")
        }),
        Err(why) => log::warn(|| format!("the plan could not be written to {at}: {why}")),
    }
}

/// Replaces the file at once with what `text` writes.
pub(crate) fn write(
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
