//! Records what PyTorch's device allocator does, and makes plans of it.
//!
//! The allocator tells of its events one at a time, under its own lock. They are noted there, in a list; the next request takes
//! them into the record before it asks the allocator. A plan is made each time that there are twice as many requests, and at the end
//! of the process, as for pinned memory.
//!
//! Invariants: what is called under the allocator's lock calls neither the allocator nor Python, starts no thread, copies no
//! record and waits for nobody who does; memory is bounded by the record's limit.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pinbuddy_plan::Options;
use pinbuddy_plan::device::{DeviceRecord, Kind, THRESHOLDS};
use pinbuddy_plan::file::MadeFor;
use pinbuddy_plan::file::device::DevicePlan;

use crate::lock::{Guard, Lock};
use crate::log::{self, Bytes};
use crate::plan::ToRecord;
use crate::plan::planner::{Made, Plannable, Planner};
use crate::plan::record::MOST_EVENTS;

/// So long a plan is written down and tried for each act: measured, 1.0 s of 1.8 million acts.
const TRIAL: Duration = Duration::from_nanos(600);

/// So many notes are taken into the record at a time.
const MOST_NOTES: usize = 1 << 14;

/// See the module's documentation.
#[derive(Debug)]
pub struct Recording {
    /// Locked under the allocator's lock, for one note at a time.
    notes: Lock<Notes>,
    /// Locked before `notes`, and never under the allocator's lock: a planner's thread copies the record.
    state: Arc<Lock<State>>,
    /// In a child of the process that is recorded, nothing is, and nothing here is locked.
    is_child: AtomicBool,
}

/// What the record does not have yet.
#[derive(Debug, Default)]
struct Notes {
    list: Vec<Note>,
    /// All requests that a plan may have a place for.
    requests: usize,
    /// From so many of these on a plan is due.
    due_at: usize,
    /// A request failed, and none came since.
    has_failed: bool,
    /// One came since: what was planned of the requests before may have to go.
    hurries: bool,
    /// A request failed when the record was full.
    failed_late: bool,
    /// The record is full.
    is_full: bool,
}

/// A block's device and address.
type At = (u32, usize);

/// One thing that the allocator did, or the program said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Note {
    Allocated {
        device: u32,
        stream: usize,
        address: usize,
        bytes: usize,
    },
    /// A stream uses a block.
    Used(At, usize),
    Freed(At),
    /// No stream uses it any more.
    Over(At),
    Segment {
        device: u32,
        bytes: usize,
        is_gone: bool,
    },
    Iteration,
    Emptied,
    Expandable,
    Failed,
}

#[derive(Debug)]
struct State {
    record: DeviceRecord,
    /// Numbers of streams, by device and address.
    streams: HashMap<(u32, usize), u32>,
    planner: Planner,
    is_known_to_search: bool,
}

impl Notes {
    fn push(&mut self, note: Note) {
        // Where the system has no memory for one more, the record ends here.
        self.is_full = self.is_full || self.list.try_reserve(1).is_err();
        if !self.is_full {
            self.list.push(note);
        }
    }

    /// The same of one that says nothing more the second time.
    fn push_once(&mut self, note: Note) {
        if self.list.last() != Some(&note) {
            self.push(note);
        }
    }

    /// Whether there is something to do that no allocator's lock allows.
    fn is_due(&self) -> bool {
        self.hurries || self.requests >= self.due_at || self.list.len() >= MOST_NOTES
    }
}

impl State {
    /// The number of a stream.
    fn number(&mut self, device: u32, stream: usize) -> u32 {
        let next = self.streams.len() as u32;
        *self.streams.entry((device, stream)).or_insert(next)
    }

    /// Takes into the record what was noted.
    fn absorb(&mut self, notes: &Lock<Notes>) {
        let (list, failed_late, is_full) = {
            let mut notes = notes.lock();
            notes.hurries = false;
            let list = std::mem::take(&mut notes.list);
            (list, notes.failed_late, notes.is_full)
        };
        for note in list {
            match note {
                Note::Allocated { device, stream, address, bytes } => {
                    let stream = self.number(device, stream);
                    let (id, bytes) = (address as u64, bytes as u64);
                    self.record.request((device, stream), id, bytes);
                }
                Note::Used((device, address), stream) => {
                    let stream = self.number(device, stream);
                    self.record.used((device, stream), address as u64);
                }
                Note::Freed((device, address)) => {
                    self.record.freed(device, address as u64);
                }
                Note::Over((device, address)) => self.record.over(device, address as u64),
                Note::Segment { device, bytes, is_gone: false } => self.record.took(device, bytes as u64),
                Note::Segment { device, bytes, .. } => self.record.gave(device, bytes as u64),
                Note::Iteration => self.record.iteration(),
                Note::Emptied => self.record.emptied(),
                Note::Expandable => self.record.behind(Kind::TorchExpandable),
                Note::Failed => self.record.failed(),
            }
        }
        if failed_late {
            self.record.failed_late();
        }
        if is_full {
            self.record.close();
        }
        if self.record.searches() && !std::mem::replace(&mut self.is_known_to_search, true) {
            // A plan that was made of the requests before would stay if the process were killed.
            self.planner.hurry();
        }
        notes.lock().is_full = self.record.is_full();
    }
}

impl Recording {
    /// Nothing recorded yet.
    pub fn new(recorded: ToRecord) -> Self {
        log::info(|| format!("this run's device memory is recorded for a plan in {}", recorded.place.path.display()));
        let mut record = DeviceRecord::new(MOST_EVENTS);
        record.behind(Kind::Torch);
        let planner = Planner::new(recorded);
        let notes = Notes { due_at: planner.due_at(), ..Notes::default() };
        let state = State { record, streams: HashMap::new(), planner, is_known_to_search: false };
        Self { notes: Lock::new(notes), state: Arc::new(Lock::new(state)), is_child: AtomicBool::new(false) }
    }

    /// Called in a child: if its parent has recorded anything, the recording is the parent's.
    pub fn enter_child(&self) {
        let noted = self.notes.if_free().is_none_or(|it| it.requests > 0);
        let is_begun = noted || self.state.if_free().is_none();
        self.is_child.store(is_begun, Ordering::Relaxed);
    }

    fn notes(&self) -> Option<Guard<'_, Notes>> {
        (!self.is_child.load(Ordering::Relaxed)).then(|| self.notes.lock())
    }

    /// Memory at `address` was handed out to a stream. Returns whether [`Self::catch_up`] is to be called, under no lock.
    /// `rounded` is what it counts as. A run with a plan compares what was asked for with the plan's threshold.
    pub fn allocated(&self, device: u32, stream: usize, address: usize, asked: usize, rounded: usize) -> bool {
        let is_below = |it: &u64| (asked as u64) < *it && *it <= rounded as u64;
        let bytes = match THRESHOLDS.iter().any(is_below) {
            true => asked,
            false => rounded,
        };
        let Some(mut notes) = self.notes() else {
            return false;
        };
        notes.push(Note::Allocated { device, stream, address, bytes });
        let is_planned = bytes as u64 >= THRESHOLDS[0];
        notes.requests += usize::from(is_planned);
        notes.hurries |= is_planned && std::mem::take(&mut notes.has_failed);
        notes.is_due()
    }

    /// A stream uses the memory at this address. Not called under the allocator's lock.
    pub fn used(&self, device: u32, stream: usize, address: usize) {
        self.note(Note::Used((device, address), stream));
    }

    /// The program frees it.
    pub fn freed(&self, device: u32, address: usize) {
        self.note(Note::Freed((device, address)));
    }

    /// It may be handed out again.
    pub fn over(&self, device: u32, address: usize) {
        self.note(Note::Over((device, address)));
    }

    fn note(&self, note: Note) {
        if let Some(mut notes) = self.notes() {
            notes.push(note);
        }
    }

    /// PyTorch's allocator took memory of a device, or gave it back.
    pub fn segment(&self, device: u32, bytes: usize, is_gone: bool) {
        self.note(Note::Segment { device, bytes, is_gone });
    }

    /// PyTorch's allocator has expandable segments. Called under its lock, too.
    pub fn expandable(&self) {
        self.note(Note::Expandable);
    }

    /// There is no memory for a request. Called under the allocator's lock, too.
    pub fn failed(&self) {
        if let Some(mut notes) = self.notes() {
            notes.push_once(Note::Failed);
            notes.has_failed = true;
            notes.failed_late |= notes.is_full;
        }
    }

    /// The cache was emptied.
    pub fn emptied(&self) {
        if let Some(mut notes) = self.notes() {
            notes.push_once(Note::Emptied);
        }
    }

    /// An iteration is over.
    pub fn iteration(&self) {
        self.note(Note::Iteration);
    }

    /// Takes into the record what was noted, and has a thread make a plan where one is due. Called under no lock; does nothing while
    /// another thread is at it.
    pub fn catch_up(&self) {
        if self.is_child.load(Ordering::Relaxed) {
            return;
        }
        let Some(mut state) = self.state.if_free() else {
            return;
        };
        state.absorb(&self.notes);
        let requests = state.record.requests();
        let is_due = state.planner.is_due(requests);
        let job = is_due.then(|| state.planner.job(requests)).flatten();
        self.notes.lock().due_at = state.planner.due_at();
        drop(state);
        if let Some(job) = job {
            let shared = Arc::clone(&self.state);
            job.start(move || shared.lock().record.clone());
        }
    }

    /// The process ends.
    pub fn close(&self) {
        if self.is_child.load(Ordering::Relaxed) {
            return;
        }
        let (record, planner) = {
            let mut state = self.state.lock();
            state.absorb(&self.notes);
            // No copy: there may be no memory for one.
            let record = std::mem::replace(&mut state.record, DeviceRecord::new(0));
            (record, state.planner.clone())
        };
        planner.end(&record);
    }
}

impl Plannable for DeviceRecord {
    type Plan = DevicePlan;

    fn requests(&self) -> usize {
        self.len()
    }

    fn trial(&self) -> Duration {
        TRIAL * self.acts_so_far() as u32
    }

    fn planned(&self, options: &Options, stop: &(dyn Fn() -> bool + Sync)) -> DevicePlan {
        self.plan(options, stop)
    }

    fn why_none(&self, made: &DevicePlan) -> Option<&'static str> {
        if self.searches() {
            return Some(
                "some found no memory and the program went on: a plan would change what such a search finds. \
                 With the batch size that it finds, and a file of its own, it can be planned",
            );
        }
        made.plans
            .is_empty()
            .then_some("too few came again for a plan that is better than PyTorch's allocator by itself")
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
            MadeFor { threshold, ..made_for.clone() } == *run
        };
        let own = all.filter(|it| is_own(&it.made_for));
        usize::try_from(own.map(|it| it.facts.requests).sum::<u64>()).ok()
    }

    fn summary(&self) -> String {
        let (size, streams) = (Bytes(self.reserved()), self.plans.len());
        format!("a plan of {size} for {streams} streams")
    }
}

#[cfg(test)]
mod tests;
