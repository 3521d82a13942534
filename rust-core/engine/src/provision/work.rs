//! What the worker does behind the program: the warm-up that the user asked for, and a window ahead
//! of demand where nobody said how much.
//!
//! Invariants: there is one worker at most; it is told to stand still while a request pins, and to
//! stop when the cache is cleared or the process ends; a region ahead of demand is registered in the
//! time that a request may lose, and it is long enough for the last request that found no room.

use std::time::Duration;

use crate::engine::Engine;
use crate::handover::IdleSegment;
use crate::units::SegmentId;

use super::orders::{Purpose, Ticket};
use super::pace::Who;
use super::{Growth, Order, Progress, Provisioner, Refusal, WarmUp};

/// What the worker is to do next.
#[derive(Debug)]
pub enum Work {
    /// Unpin what it is told, pin the region, and say what came of it.
    Pin(Order),
    /// Unpin these.
    Unpin(Vec<IdleSegment>),
    /// Sleep until something changes: a request pins.
    Wait,
    /// Nothing; it is the worker no longer.
    Done,
}

/// What the worker is to do in the middle of a pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoOn {
    /// Go on.
    Yes,
    /// Sleep until something changes: a request pins.
    Wait,
    /// Give it up.
    Stop,
}

/// What a request may lose to a registration that is under way, apart from half its own pin.
const LOST: Duration = Duration::from_millis(8);

/// The least that is worth a region ahead of demand.
const LEAST: usize = 16 << 20;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Worker {
    pub(super) at_work: bool,
    /// Regions that were under way when the cache was cleared.
    pub(super) stale: Vec<SegmentId>,
}

impl Provisioner {
    /// Whether there is work and nobody does it: then the caller does, until [`Work::Done`].
    pub fn hire(&mut self) -> bool {
        let hired = !self.worker.at_work && self.has_work();
        self.worker.at_work |= hired;
        hired
    }

    /// The worker could not begin, or ends before it is done.
    pub fn dismiss(&mut self) {
        self.worker.at_work = false;
    }

    /// The user wants what is owed now, whatever the mode, and how much that is where nobody said so.
    pub fn urge(&mut self) {
        self.warm.urge();
    }

    /// Whether the worker has begun and is not done.
    pub fn is_at_work(&self) -> bool {
        self.worker.at_work
    }

    /// Cuts what is owed to what the budget has room for: `most` segments; returns what it was.
    pub fn limit(&mut self, most: usize) -> usize {
        self.warm.limit(most)
    }

    /// What the worker is to do next; `left` is what the budget leaves.
    pub fn work(&mut self, now: Duration, left: usize) -> Work {
        while let Some(id) = self.worker.stale.pop() {
            let idle = self.engine.take_if_idle(id);
            if !idle.is_empty() {
                return Work::Unpin(idle);
            }
        }
        if !self.has_work() {
            self.worker.at_work = false;
            return Work::Done;
        }
        if self.orders.any_request() {
            return Work::Wait;
        }
        let leaving = self.engine.take_leaving(1, usize::MAX);
        if !leaving.is_empty() {
            return Work::Unpin(leaving);
        }
        let bytes = if self.is_warming() {
            self.settings.segment_bytes
        } else {
            let bytes = self.ahead_of_demand().unwrap_or(usize::MAX);
            self.ahead
                .open(self.engine.in_use(), self.engine.largest_set());
            bytes
        };
        let Some(bytes) = Engine::exact_region(bytes).filter(|bytes| *bytes <= left) else {
            self.warm.refused(Refusal::Budget);
            self.worker.at_work = false;
            return Work::Done;
        };
        let purpose = Purpose {
            who: Who::Worker,
            request: 0,
            home: false,
        };
        Work::Pin(self.order(bytes, purpose, Vec::new(), now))
    }

    /// What the worker is to do in the middle of the pin of `ticket`.
    pub fn go_on(&self, ticket: Ticket) -> GoOn {
        let cleared = self
            .orders
            .get(ticket)
            .is_none_or(|it| it.who == Who::Worker && it.clears != self.clears);
        if self.closed || cleared {
            GoOn::Stop
        } else if self.orders.any_request() {
            GoOn::Wait
        } else {
            GoOn::Yes
        }
    }

    /// How far the warm-up is.
    pub fn progress(&self) -> Progress {
        // What is not to come, since requests have pinned as much by themselves, is not owed.
        let comes = self.is_warming() || self.warm.owes() && self.warm.stands_back();
        let any_pinned = self.engine.pinned_bytes() > 0;
        self.warm.progress(self.worker.at_work, comes, any_pinned)
    }

    fn has_work(&self) -> bool {
        let asked = self.ahead.demand() > 0 && self.settings.warm_up != WarmUp::Off;
        !self.closed
            && (!self.worker.stale.is_empty()
                || !self.engine.leaving().is_empty()
                || self.is_warming() && (asked || self.warm.is_urged())
                || asked && self.ahead_of_demand().is_some())
    }

    /// Whether it is segments that the user asked for that come next. What requests have pinned by
    /// themselves counts as well: no more is ready than was asked for.
    pub(super) fn is_warming(&self) -> bool {
        self.warm.owes()
            && !self.warm.stands_back()
            && self.held() + self.settings.segment_bytes <= self.allowance(0)
    }

    /// The next region ahead of demand, if there is to be one.
    fn ahead_of_demand(&self) -> Option<usize> {
        let by_demand = self.settings.warm_up == WarmUp::Background
            && self.settings.growth == Growth::Segment
            && self.settings.count.is_none();
        let window = self.ahead.window();
        if !by_demand || self.warm.is_refused() || self.guard.is_yielding() || window == 0 {
            return None;
        }
        let ready = self.held() - self.engine.in_use().min(self.held());
        // Once half of it is used up: a few long regions serve better than many short ones.
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
