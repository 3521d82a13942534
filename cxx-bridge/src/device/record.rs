//! Records what PyTorch's device allocator does, and makes plans of it.
//!
//! Its events come one at a time, under its own lock, so they go straight into the record. A plan is made each time that
//! there are twice as many requests, and at the end of the process, as for pinned memory.
//!
//! Invariants: what is called under the allocator's lock calls neither the allocator nor Python, and does not wait for
//! planning; memory is bounded by the record's limit.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pinbuddy_plan::Options;
use pinbuddy_plan::device::DeviceRecord;
use pinbuddy_plan::file::MadeFor;
use pinbuddy_plan::file::device::Stream;
use pinbuddy_plan::record::Event;

use crate::backing::background;
use crate::lock::{Guard, Lock};
use crate::log::{self, Bytes};
use crate::plan::record::{FIRST, LAST_PATIENCE, MOST_EVENTS, PATIENCE, Target};

/// See the module's documentation.
#[derive(Debug)]
pub struct Recording {
    state: Lock<State>,
    target: Arc<Target>,
    run: MadeFor,
    /// Whether a thread makes a plan.
    at_work: Arc<AtomicBool>,
    /// In a child of the process that is recorded, nothing is, and nothing here is locked.
    is_child: AtomicBool,
}

#[derive(Debug)]
struct State {
    record: DeviceRecord,
    /// Streams by device and address, in the order of their first requests.
    streams: HashMap<(u32, usize), Stream>,
    /// How many streams each device has.
    counts: HashMap<u32, u32>,
    /// Requests of the last plan, and of the next.
    planned: usize,
    next: usize,
}

impl Recording {
    /// Nothing recorded yet.
    pub fn new(path: PathBuf, run: MadeFor) -> Self {
        log::info(|| {
            format!(
                "this run's device memory is recorded for a plan in {}",
                path.display()
            )
        });
        let state = State {
            record: DeviceRecord::new(MOST_EVENTS),
            streams: HashMap::new(),
            counts: HashMap::new(),
            planned: 0,
            next: FIRST,
        };
        Self {
            state: Lock::new(state),
            target: Arc::new(Target::new(path)),
            run,
            at_work: Arc::default(),
            is_child: AtomicBool::new(false),
        }
    }

    /// Called in a child: if its parent has recorded anything, the recording is the parent's.
    pub fn enter_child(&self) {
        let is_begun = self.state.if_free().is_none_or(|it| !it.record.is_empty());
        self.is_child.store(is_begun, Ordering::Relaxed);
    }

    fn state(&self) -> Option<Guard<'_, State>> {
        (!self.is_child.load(Ordering::Relaxed)).then(|| self.state.lock())
    }

    /// Memory at `address` was handed out to a stream.
    pub fn allocated(&self, device: u32, stream: usize, address: usize, bytes: usize) {
        let Some(mut state) = self.state() else {
            return;
        };
        let stream = state.stream(device, stream);
        let (id, bytes, lane) = (address as u64, bytes as u64, 0);
        state
            .record
            .push(stream, Event::Request { id, bytes, lane });
        if state.record.len() >= state.next {
            self.plan_in_a_thread(&mut state);
        }
    }

    /// Memory of this stream is free again.
    pub fn freed(&self, device: u32, stream: usize, address: usize) {
        let Some(mut state) = self.state() else {
            return;
        };
        let stream = state.stream(device, stream);
        let id = address as u64;
        state.record.push(stream, Event::Over { id });
    }

    /// An iteration is over.
    pub fn iteration(&self) {
        if let Some(mut state) = self.state() {
            state.record.iteration();
        }
    }

    /// The process ends.
    pub fn close(&self) {
        let (record, planned) = {
            let Some(state) = self.state() else { return };
            (state.record.clone(), state.planned)
        };
        // A plan that another thread is making is not of all requests.
        if record.len() > planned {
            make(&record, self.run.clone(), &self.target, LAST_PATIENCE);
        }
    }

    fn plan_in_a_thread(&self, state: &mut State) {
        if self.at_work.swap(true, Ordering::AcqRel) {
            return;
        }
        state.planned = state.record.len();
        state.next = state.planned.saturating_mul(2);
        let (record, run) = (state.record.clone(), self.run.clone());
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

impl State {
    fn stream(&mut self, device: u32, address: usize) -> Stream {
        let counts = &mut self.counts;
        *self.streams.entry((device, address)).or_insert_with(|| {
            let count = counts.entry(device).or_default();
            let number = *count;
            *count += 1;
            Stream { device, number }
        })
    }
}

/// Makes the plans and writes them.
fn make(record: &DeviceRecord, run: MadeFor, target: &Target, patience: Duration) {
    let began = Instant::now();
    let options = Options {
        made_for: run,
        threads: 1,
    };
    let made = record.plan(&options, &|| began.elapsed() > patience);
    match target.replace(record.len(), |out| made.write(out)) {
        Ok(false) => {}
        Ok(true) => log::info(|| {
            let (size, streams) = (Bytes(made.reserved()), made.plans.len());
            format!("a plan of {size} for {streams} streams was written to {target}")
        }),
        Err(why) => log::warn(|| format!("the plan could not be written to {target}: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinbuddy_plan::file::device::DevicePlan;
    use std::fs;

    const MIB: usize = 1 << 20;

    /// Two streams of a device and one of another, whose address is the same.
    fn record(recording: &Recording, steps: usize) {
        for _ in 0..steps {
            for (device, stream, mib) in [(0, 0x10, 3), (0, 0, 5), (1, 0x10, 4)] {
                let address = 0x1000 * mib;
                recording.allocated(device, stream, address, mib * MIB);
                recording.freed(device, stream, address);
            }
            recording.iteration();
        }
    }

    #[test]
    fn streams_are_numbered_by_their_first_requests() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device.json");
        let recording = Recording::new(path.clone(), MadeFor::default());
        record(&recording, 20);
        recording.close();
        let plans = DevicePlan::read(&fs::read_to_string(path).unwrap()).unwrap();
        let mut found: Vec<_> = plans
            .plans
            .iter()
            .map(|(it, plan)| ((it.device, it.number), plan.reserved() as usize / MIB))
            .collect();
        found.sort_unstable();
        assert_eq!(found, [((0, 0), 3), ((0, 1), 5), ((1, 0), 4)]);
    }

    #[test]
    fn a_child_of_a_process_that_has_recorded_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device.json");
        let recording = Recording::new(path.clone(), MadeFor::default());
        record(&recording, 20);
        recording.enter_child();
        record(&recording, 20);
        recording.close();
        assert!(!path.exists());
        assert_eq!(recording.state.lock().record.len(), 60);
    }

    #[test]
    fn a_child_of_a_process_that_has_not_begun_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device.json");
        let recording = Recording::new(path.clone(), MadeFor::default());
        recording.enter_child();
        record(&recording, 20);
        recording.close();
        assert!(path.exists());
    }
}
