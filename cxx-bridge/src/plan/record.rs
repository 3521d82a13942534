//! Records this run's requests, for a plan of pinned memory.
//!
//! Invariant: memory is bounded by [`MOST_EVENTS`].

use std::collections::HashMap;
use std::fs;
use std::io;
use std::time::Instant;

use pinbuddy_plan::file::MadeFor;
use pinbuddy_plan::record::{Event as Recorded, Record};
use pinbuddy_plan::{Options, Plan, plan};

use super::ToRecord;
use super::planner::{Made, Plannable, Planner};
use crate::log::{self, Bytes};
use crate::record::{Event, Lost, Sink, What};

/// So many events are recorded; with them, less than 100 MiB are in use.
pub(crate) const MOST_EVENTS: u32 = 2_000_000;

/// See the module's documentation.
#[derive(Debug)]
pub struct Recording {
    record: Record,
    planner: Planner,
    /// By thread.
    lanes: HashMap<u32, u32>,
    /// Events were dropped: what comes after that is not recorded.
    is_torn: bool,
}

impl Recording {
    /// Nothing recorded yet.
    pub fn new(recorded: ToRecord) -> Self {
        log::info(|| {
            let path = recorded.path.display();
            match recorded.above {
                0 => format!("this run is recorded for a plan in {path}"),
                above => format!(
                    "the plan in {path} is of few requests: this run is recorded, and if it makes more than {above} its plan \
                     replaces that one"
                ),
            }
        });
        Self {
            record: Record::new(MOST_EVENTS),
            planner: Planner::new(recorded),
            lanes: HashMap::new(),
            is_torn: false,
        }
    }

    /// Whether nothing more is recorded.
    fn is_complete(&self) -> bool {
        self.is_torn || self.record.is_full()
    }

    fn push(&mut self, what: What) {
        let event = match what {
            What::Request { private: true, .. } => return,
            What::Request { bytes, .. } if bytes < self.planner.threshold().max(1) => return,
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
}

impl Sink for Recording {
    fn event(&mut self, event: Event) {
        if !self.is_torn && !event.device {
            self.push(event.what);
        }
    }

    fn lost(&mut self, lost: Lost) {
        let events = lost.pinned;
        if events > 0 && !self.is_torn {
            log::warn(|| {
                format!("{events} events were lost: the plan is made of what was recorded before")
            });
        }
        self.is_torn |= events > 0;
    }

    fn pause(&mut self) {
        let requests = self.record.len();
        let is_due = self.planner.is_due(requests) || self.is_complete();
        if is_due && !self.planner.is_at_work() && !self.planner.is_done(requests) {
            let record = self.record.clone();
            self.planner.in_a_thread(requests, move || record);
        }
    }

    fn wants_more(&self) -> bool {
        // The program goes on, and so do other recordings, which must not lose events while this one's last plan is made: a thread
        // makes it. Until then the end of the process may come.
        !self.is_complete() || !self.planner.is_done(self.record.len())
    }

    fn end(&mut self) {
        self.planner.end(&self.record);
    }
}

impl Plannable for Record {
    type Plan = Plan;

    fn requests(&self) -> usize {
        self.len()
    }

    fn planned(&self, options: &Options, stop: &(dyn Fn() -> bool + Sync)) -> Plan {
        let began = Instant::now();
        let mut made = plan(self, options, stop);
        made.facts.seconds = began.elapsed().as_secs_f64();
        made
    }
}

impl Made for Plan {
    fn write(&self, out: &mut io::BufWriter<fs::File>) -> io::Result<()> {
        Self::write(self, out)
    }

    fn requests_in(text: &str, run: &MadeFor) -> Option<usize> {
        let plan = Self::read(text).ok().filter(|it| it.made_for == *run)?;
        usize::try_from(plan.facts.requests).ok()
    }

    fn summary(&self) -> String {
        let (size, slots) = (Bytes(self.reserved()), self.slots.len());
        format!("a plan of {size} and {slots} slots")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_memory_that_is_lost_tears_no_plan_of_pinned_memory() {
        let to_record = ToRecord::new("never written".into(), MadeFor::default());
        let mut recording = Recording::new(to_record);
        let mut lose = |pinned, device| {
            recording.lost(Lost { pinned, device });
            recording.wants_more()
        };
        assert!(lose(0, 5));
        assert!(!lose(1, 0));
    }

    #[test]
    fn a_record_that_is_complete_while_a_plan_is_made_gets_its_own_plan() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        for is_torn in [false, true] {
            let _ = fs::remove_file(&path);
            let mut recording = Recording::new(ToRecord::new(path.clone(), MadeFor::default()));
            recording.record = Record::new(if is_torn { 1000 } else { 8 });
            // A thread that takes its time.
            let (done, until) = std::sync::mpsc::channel::<()>();
            let copy = move || {
                let _ = until.recv();
                Record::new(1)
            };
            recording.planner.in_a_thread(0, copy);
            for id in 1..=8 {
                recording.push(What::Request {
                    id,
                    bytes: 1 << 20,
                    thread: 0,
                    private: false,
                });
            }
            let pinned = u64::from(is_torn);
            recording.lost(Lost { pinned, device: 0 });
            recording.pause();
            assert!(recording.wants_more(), "its plan is still to be made");
            drop(done);
            while recording.wants_more() {
                recording.pause();
                std::thread::yield_now();
            }
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(Plan::read(&text).unwrap().facts.requests, 8);
        }
    }
}
