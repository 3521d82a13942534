//! What the worker pins in the background: the warm-up that the user asked for, or, where the user
//! gave no number, a window ahead of demand.
//!
//! Invariants: there is at most one worker; it pauses while a request pins, and stops when the cache
//! is cleared or the process ends. A region ahead of demand is registered within the time that a
//! request may lose, and is long enough for the last request that missed.

use std::time::Duration;

use crate::engine::Engine;
use crate::handover::IdleSegment;
use crate::units::{Home, SegmentId};

use super::pace::Who;
use super::permits::{PermitId, Purpose};
use super::resort::bytes_of;
use super::{Growth, Permit, Progress, Provisioner, Refusal, WarmUp};

/// The worker's next step.
#[derive(Debug)]
pub enum Work {
    /// Unpin, then pin, as the permit says; report the outcome.
    Pin(Permit),
    /// Unpin these, and report it.
    Unpin(Vec<IdleSegment>),
    /// A request pins: sleep until something changes.
    Wait,
    /// Nothing is left to do, and the caller is no longer the worker.
    Done,
}

/// The worker's next step in the middle of a pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoOn {
    /// Go on.
    Yes,
    /// A request pins: sleep until something changes.
    Wait,
    /// Abandon the pin.
    Stop,
}

/// A request may wait for the driver for this long, and half of its own pin, because the worker's
/// region is being registered.
const LOST: Duration = Duration::from_millis(8);

/// The first region of a warm-up whose size nobody has set.
const FIRST: usize = 64 << 20;

/// The shortest region that is pinned ahead of demand.
const LEAST: usize = 16 << 20;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Worker {
    pub(super) at_work: bool,
    /// Where it pins: at the home of the last request that missed; a warm-up at that of who called for it, to its end.
    pub(super) home: Home,
    /// Bytes that it unpins, until it says that it has.
    pub(super) unpinning: usize,
    /// Regions whose pins were under way when the cache was cleared, and their bytes: unpinned if still idle, else counted
    /// as the warm-up's.
    pub(super) cleared: Vec<(SegmentId, usize)>,
}

impl Provisioner {
    /// Makes the caller the worker, until [`Work::Done`], if there is work and no worker.
    pub fn hire(&mut self) -> bool {
        self.has_work() && self.begin_shift()
    }

    /// Makes the caller the worker, until [`Work::Done`], if there is none and the process goes on: also without work, for a
    /// caller that makes some.
    pub fn begin_shift(&mut self) -> bool {
        let begins = !self.worker.at_work && !self.closed;
        self.worker.at_work |= begins;
        begins
    }

    /// The worker could not start, or ended before [`Work::Done`].
    pub fn dismiss(&mut self) {
        self.worker.at_work = false;
        self.worker.unpinning = 0;
    }

    /// A region that was let go, for the worker to unpin.
    pub fn next_leaving(&mut self) -> Vec<IdleSegment> {
        let leaving = self.engine.take_leaving(1, usize::MAX);
        self.unpins(bytes_of(&leaving));
        leaving
    }

    /// The worker unpins so much: of the engine, or a region that it does not have.
    pub fn unpins(&mut self, bytes: usize) {
        self.worker.unpinning = bytes;
    }

    /// The worker has unpinned that.
    pub fn unpinned(&mut self) {
        self.worker.unpinning = 0;
    }

    /// Bytes that the worker is unpinning now: who needs memory gets it by waiting.
    pub fn unpinning(&self) -> usize {
        self.worker.unpinning
    }

    /// The user wants the missing segments now, whatever the mode; [`super::Settings::UNSET_COUNT`] of
    /// them if no number was set. `home` is the caller's.
    pub fn urge(&mut self, home: Home) {
        self.worker.home = home;
        let held = self.held();
        self.warm.urge(held, &self.settings);
    }

    /// Whether there is a worker.
    pub fn is_at_work(&self) -> bool {
        self.worker.at_work
    }

    /// Cuts the deficit to the `most` segments that the budget allows; returns the deficit before.
    pub fn limit(&mut self, most: usize) -> usize {
        self.warm.limit(most)
    }

    /// The worker's next step; `left` is what the budget leaves, in bytes.
    pub fn work(&mut self, now: Duration, left: usize) -> Work {
        while let Some((id, bytes)) = self.worker.cleared.pop() {
            let idle = self.engine.take_if_idle(id);
            if !idle.is_empty() {
                self.unpins(bytes_of(&idle));
                return Work::Unpin(idle);
            }
            self.warm.count_segment(bytes, &self.settings);
        }
        if !self.has_work() {
            self.worker.at_work = false;
            return Work::Done;
        }
        if self.permits.any_request() {
            return Work::Wait;
        }
        let leaving = self.next_leaving();
        if !leaving.is_empty() {
            return Work::Unpin(leaving);
        }
        let bytes = if self.is_warming() {
            self.next_of_the_warm_up()
        } else {
            let bytes = self.ahead_of_demand().unwrap_or(usize::MAX);
            self.ahead.open(self.engine.in_use(), self.engine.largest_set());
            bytes
        };
        let Some(bytes) = Engine::exact_region(bytes).filter(|bytes| *bytes <= left) else {
            self.warm.refused(Refusal::Budget);
            self.worker.at_work = false;
            return Work::Done;
        };
        let purpose = Purpose { who: Who::Worker, home: self.worker.home, request: 0, working_set: false };
        Work::Pin(self.permit(bytes, purpose, Vec::new(), now))
    }

    /// The worker's next step in the middle of the pin of permit `id`.
    pub fn go_on(&self, id: PermitId) -> GoOn {
        let cleared = self.permits.get(id).is_none_or(|it| it.who == Who::Worker && it.clears != self.clears);
        if self.closed || cleared {
            GoOn::Stop
        } else if self.permits.any_request() {
            GoOn::Wait
        } else {
            GoOn::Yes
        }
    }

    /// Progress of the warm-up.
    pub fn progress(&self) -> Progress {
        // Segments in whose place requests have pinned as much themselves will not be pinned.
        let comes = self.is_warming() || self.warm.has_deficit() && self.warm.stands_back();
        let any_pinned = self.engine.pinned_bytes() > 0;
        self.warm.progress(self.worker.at_work, comes, any_pinned)
    }

    fn has_work(&self) -> bool {
        let asked = self.ahead.demand() > 0 && self.settings.warm_up != WarmUp::Off;
        !self.closed
            && (!self.worker.cleared.is_empty()
                || !self.engine.leaving().is_empty()
                || self.is_warming() && (asked || self.warm.is_urged())
                || asked && self.ahead_of_demand().is_some())
    }

    /// Whether the worker pins segments that the user asked for. Regions that requests pinned
    /// themselves count too: no more is ready than was asked for.
    pub(super) fn is_warming(&self) -> bool {
        self.warm.has_deficit()
            && !self.warm.stands_back()
            && self.held() + self.settings.segment_bytes <= self.allowance(0)
    }

    /// Bytes of the warm-up's next region. A user who named no number of segments does not know what is needed, and may
    /// ask for memory at any moment: so regions are short at first, and double what is pinned.
    fn next_of_the_warm_up(&self) -> usize {
        let segment = self.settings.segment_bytes;
        if self.settings.count.is_some() || self.settings.warm_up == WarmUp::Sync {
            segment
        } else {
            self.held().max(FIRST).min(segment)
        }
    }

    /// Bytes of the next region ahead of demand, if one is to be pinned.
    fn ahead_of_demand(&self) -> Option<usize> {
        let by_demand = self.settings.warm_up == WarmUp::Background
            && self.settings.growth == Growth::Segment
            && self.settings.count.is_none();
        let window = self.ahead.window();
        if !by_demand || self.warm.is_refused() || self.guard.is_yielding() || window == 0 {
            return None;
        }
        let ready = self.engine.ready_at(self.worker.home) + self.permits.at(self.worker.home).0;
        // Refilled once half of it is used up: a few long regions serve better than many short ones.
        if ready > window / 2 {
            return None;
        }
        let (last, smallest) = (self.ahead.last()?, self.ahead.smallest_known()?);
        let may_take = LOST + self.paces.of(Who::Request, smallest)? / 2;
        let bytes = window
            .saturating_sub(ready)
            .min(self.settings.segment_bytes)
            .min(self.paces.registered_within(may_take).unwrap_or(usize::MAX));
        let allowed = self.held() + bytes <= self.allowance(0);
        (bytes >= last.max(LEAST) && allowed).then_some(bytes)
    }
}
