//! Records what PyTorch's device allocator does, and makes plans of it.
//!
//! Its events come one at a time, under its own lock, so they go straight into the record. A plan is made each time that
//! there are twice as many requests, and at the end of the process, as for pinned memory.
//!
//! Invariants: what is called under the allocator's lock calls neither the allocator nor Python, and does not wait for
//! planning; memory is bounded by the record's limit.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use pinbuddy_plan::Options;
use pinbuddy_plan::device::{DeviceRecord, Kind, THRESHOLDS};
use pinbuddy_plan::file::MadeFor;
use pinbuddy_plan::file::device::DevicePlan;

use crate::lock::{Guard, Lock};
use crate::log::{self, Bytes};
use crate::plan::ToRecord;
use crate::plan::planner::{Made, Plannable, Planner};
use crate::plan::record::MOST_EVENTS;

/// See the module's documentation.
#[derive(Debug)]
pub struct Recording {
    state: Lock<State>,
    /// In a child of the process that is recorded, nothing is, and nothing here is locked.
    is_child: AtomicBool,
}

#[derive(Debug)]
struct State {
    record: DeviceRecord,
    /// Numbers of streams, by device and address.
    streams: HashMap<(u32, usize), u32>,
    planner: Planner,
}

impl Recording {
    /// Nothing recorded yet.
    pub fn new(recorded: ToRecord) -> Self {
        log::info(|| {
            format!(
                "this run's device memory is recorded for a plan in {}",
                recorded.path.display()
            )
        });
        let mut record = DeviceRecord::new(MOST_EVENTS);
        record.behind(Kind::Torch);
        let state = State {
            record,
            streams: HashMap::new(),
            planner: Planner::new(recorded),
        };
        Self {
            state: Lock::new(state),
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
    /// `rounded` is what it counts as. A run with a plan compares what was asked for with the plan's threshold.
    pub fn allocated(
        &self,
        device: u32,
        stream: usize,
        address: usize,
        asked: usize,
        rounded: usize,
    ) {
        let is_below = |it: &u64| (asked as u64) < *it && *it <= rounded as u64;
        let bytes = match THRESHOLDS.iter().any(is_below) {
            true => asked,
            false => rounded,
        };
        let Some(mut state) = self.state() else {
            return;
        };
        let state = &mut *state;
        let next = state.streams.len() as u32;
        let stream = *state.streams.entry((device, stream)).or_insert(next);
        let (id, bytes) = (address as u64, bytes as u64);
        state.record.request((device, stream), id, bytes);
        if state.planner.is_due(state.record.len()) {
            state.planner.in_a_thread(&state.record);
        }
    }

    /// Memory is free again.
    pub fn freed(&self, device: u32, address: usize) {
        if let Some(mut state) = self.state() {
            state.record.over(device, address as u64);
        }
    }

    /// PyTorch's allocator has expandable segments.
    pub fn expandable(&self) {
        if let Some(mut state) = self.state() {
            state.record.behind(Kind::TorchExpandable);
        }
    }

    /// An iteration is over.
    pub fn iteration(&self) {
        if let Some(mut state) = self.state() {
            state.record.iteration();
        }
    }

    /// The process ends.
    pub fn close(&self) {
        let (record, planner) = {
            let Some(state) = self.state() else { return };
            (state.record.clone(), state.planner.clone())
        };
        planner.end(&record);
    }
}

impl Plannable for DeviceRecord {
    type Plan = DevicePlan;

    fn requests(&self) -> usize {
        self.len()
    }

    fn planned(&self, options: &Options, stop: &(dyn Fn() -> bool + Sync)) -> DevicePlan {
        self.plan(options, stop)
    }
}

impl Made for DevicePlan {
    fn write(&self, out: &mut io::BufWriter<fs::File>) -> io::Result<()> {
        Self::write(self, out)
    }

    fn requests_in(text: &str, run: &MadeFor) -> Option<usize> {
        let plans = Self::read(text).ok()?.plans;
        let all = plans.iter().map(|(_, plan)| plan);
        let is_own = |made_for: &MadeFor| {
            let threshold = run.threshold;
            MadeFor {
                threshold,
                ..made_for.clone()
            } == *run
        };
        let own = all.filter(|it| is_own(&it.made_for));
        usize::try_from(own.map(|it| it.facts.requests).sum::<u64>()).ok()
    }

    fn why_none(&self) -> Option<&'static str> {
        self.plans.is_empty().then_some(
            "too few came again for a plan that is better than PyTorch's allocator by itself",
        )
    }

    fn summary(&self) -> String {
        let (size, streams) = (Bytes(self.reserved()), self.plans.len());
        format!("a plan of {size} for {streams} streams")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// Two streams of a device and one of another, whose address is the same.
    fn record(recording: &Recording, steps: usize) {
        for _ in 0..steps {
            // Of a pool, whose requests no plan serves.
            recording.freed(0, 0x9000);
            // Two sizes, one after the other, of which PyTorch has a segment each.
            for (device, stream, mib) in [(0, 0x10, 12), (0, 0, 14), (1, 0x10, 16)] {
                for mib in [mib, mib + 10] {
                    let address = 0x1000 * mib;
                    let bytes = mib * MIB;
                    recording.allocated(device, stream, address, bytes, bytes);
                    recording.freed(device, address);
                }
            }
            recording.iteration();
        }
    }

    #[test]
    fn streams_are_numbered_by_their_first_requests() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device.json");
        let recording = Recording::new(ToRecord::new(path.clone(), MadeFor::default()));
        record(&recording, 20);
        recording.close();
        let plans = DevicePlan::read(&fs::read_to_string(path).unwrap()).unwrap();
        let mut found: Vec<_> = plans
            .plans
            .iter()
            .map(|(it, plan)| ((it.device, it.number), plan.reserved() as usize / MIB))
            .collect();
        found.sort_unstable();
        assert_eq!(found, [((0, 0), 22), ((0, 1), 24), ((1, 0), 26)]);
    }

    #[test]
    fn a_child_of_a_process_that_has_recorded_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device.json");
        let recording = Recording::new(ToRecord::new(path.clone(), MadeFor::default()));
        record(&recording, 20);
        recording.enter_child();
        record(&recording, 20);
        recording.close();
        assert!(!path.exists());
        assert_eq!(recording.state.lock().record.len(), 120);
    }

    #[test]
    fn a_child_of_a_process_that_has_not_begun_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device.json");
        let recording = Recording::new(ToRecord::new(path.clone(), MadeFor::default()));
        recording.enter_child();
        record(&recording, 20);
        recording.close();
        assert!(path.exists());
    }

    #[test]
    fn a_run_of_many_requests_of_which_none_comes_again_is_not_recorded_twice() {
        use crate::config::Config;
        use crate::plan::Choice;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device.plan");
        let run = crate::plan::this_run("2.15.0", THRESHOLDS[0]);
        let recording = Recording::new(ToRecord::new(path.clone(), run));
        for number in 0..4096 {
            let bytes = MIB + 4096 * number;
            recording.allocated(0, 0, 0x1000, bytes, bytes);
            recording.freed(0, 0x1000);
        }
        recording.close();
        let choose = |update: bool| {
            let update = update.then_some("1");
            let named = |name: &str| {
                update
                    .filter(|_| name == "BUDDY_PLAN_UPDATE")
                    .map(Into::into)
            };
            let (config, _) = Config::read(named);
            crate::device::choose(path.to_str(), &config, "2.15.0")
        };
        let (choice, said) = choose(false);
        assert!(matches!(choice, Choice::Nothing), "{choice:?}");
        assert!(
            said.unwrap()
                .contains("of 4096 requests too few came again")
        );
        let (choice, said) = choose(true);
        assert!(matches!(choice, Choice::Record(_)) && said.is_none());
    }
}
