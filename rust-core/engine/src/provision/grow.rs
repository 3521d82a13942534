//! How a request that misses gets a block.
//!
//! In this order: blocks whose events are complete; beside a plan, those whose events soon are; a pin under way that ends
//! soon; a pin of its own, before which idle regions are unpinned if the allowance or the budget asks for it; and, when that is
//! refused, the last resorts (`resort`).

use std::time::Duration;

use crate::engine::{Decision, Engine, Of};
use crate::handover::IdleSegment;

use super::guard::Mood;
use super::pace::Who;
use super::patience::Polls;
use super::permits::Purpose;
use super::{Growth, Provisioner, Refusal, Step, Want, WarmUp};

/// What a request that misses needs.
#[derive(Clone, Copy)]
pub(super) struct Need {
    /// The length of a region for it alone, in bytes.
    pub(super) exact: usize,
    /// The time of its step.
    pub(super) now: Duration,
    /// The bytes that the budget leaves.
    pub(super) left: usize,
}

impl Provisioner {
    /// The next step of a request; `left` is what the budget leaves, in bytes.
    #[inline]
    pub fn step(&mut self, want: &mut Want, now: Duration, left: usize) -> Step {
        self.engine.turn_to(want.home);
        let decision = if want.asked { self.engine.ask_again(want.bytes) } else { self.engine.request(want.bytes) };
        match decision {
            Decision::Block(block) => Step::Block(block),
            decision => self.without_a_block(want, decision, now, left),
        }
    }

    #[cold]
    fn without_a_block(&mut self, want: &mut Want, decision: Decision, now: Duration, left: usize) -> Step {
        want.asked = true;
        match decision {
            Decision::Block(block) => Step::Block(block),
            Decision::PassThrough => pass_through(Vec::new(), None),
            _ if self.closed => pass_through(Vec::new(), Some(Refusal::Stopped)),
            Decision::Renew { bytes } if bytes <= left.saturating_add(self.engine.idle_region_bytes()) => {
                self.renew(want, bytes, now)
            }
            Decision::Renew { .. } => {
                // Nothing is unpinned for a region that the budget does not allow.
                self.engine.working_set_refused();
                Step::Reap
            }
            Decision::Pin { bytes: exact } => self.grow(want, Need { exact, now, left }),
        }
    }

    /// Replaces stale regions by one of `bytes` bytes, or by none.
    fn renew(&mut self, want: &Want, bytes: usize, now: Duration) -> Step {
        if bytes == 0 {
            self.engine.let_go_stale();
            return Step::Reap;
        }
        let unpin = self.engine.take_stale();
        let purpose = Purpose { who: Who::Request, home: want.home, request: want.bytes, working_set: true };
        Step::Pin(self.permit(bytes, purpose, unpin, now))
    }

    /// More memory for a request.
    fn grow(&mut self, want: &mut Want, need: Need) -> Step {
        if let Some(step) = self.before_growth(want, need) {
            return step;
        }
        let Need { exact, left, .. } = need;
        let largest_set = self.engine.largest_set() as u64;
        let learning = self.engine.is_learning();
        let mood = self.guard.mood(self.engine.rival(), largest_set, learning);
        if exact > self.settings.segment_bytes && want.refused.is_none() && left >= exact {
            return self.of_its_class(want, need, mood);
        }
        if mood == Mood::Yielding {
            let is_short = want.refused.is_some() || left < exact;
            if let Some(block) = self.block_anywhere(want.bytes) {
                return Step::Block(block);
            }
            let most = exact.next_power_of_two();
            self.engine.let_go_least_used(most, Of::Segments);
            // Upstream is about to pin as much.
            let unpin = if is_short || self.settings.growth == Growth::Exact {
                self.engine.take_leaving(most, usize::MAX)
            } else {
                Vec::new()
            };
            return pass_through(unpin, None);
        }
        if want.refused.is_some() || left < exact {
            return self.last_resort(want, need);
        }
        self.of_all_classes(want, need, mood)
    }

    /// What comes before more memory: events are looked at, then a pin under way is waited for.
    fn before_growth(&mut self, want: &mut Want, need: Need) -> Option<Step> {
        let Need { exact, now, .. } = need;
        if !std::mem::replace(&mut want.reaped, true) {
            return Some(Step::Reap);
        }
        if !std::mem::replace(&mut want.counted, true) {
            let in_use = self.engine.in_use() + exact;
            let set = self.engine.set_with(exact);
            self.ahead.miss(exact, in_use, set);
            // A warm-up under way goes on where it was called for.
            if !(self.is_at_work() && self.is_warming()) {
                self.worker.home = want.home;
            }
        }
        if self.polls(want, need) {
            return Some(Step::Poll);
        }
        // While its last segment is being pinned nothing is missing any more, and that segment is waited for as well.
        let warming = self.is_warming() || self.permits.any_of_the_worker();
        if self.settings.warm_up == WarmUp::Sync && warming {
            return Some(if self.is_at_work() { Step::Wait { until: None } } else { Step::WarmUp });
        }
        if want.waited {
            return None;
        }
        let until = self.permits.wait_for((exact, want.home), now, &self.paces)?;
        want.waited = true;
        Some(Step::Wait { until: Some(until) })
    }

    /// Whether the request waits for streams.
    fn polls(&mut self, want: &mut Want, need: Need) -> bool {
        let Need { exact, now, .. } = need;
        if want.polls == Polls::NotYet {
            let pin = self.paces.of(Who::Request, exact).or_else(|| self.paces.of(Who::Worker, exact));
            let wait = pin.and_then(|it| self.patience.of(it));
            want.polls = wait.map_or(Polls::Over, |it| Polls::Until(now + it));
        }
        match want.polls {
            Polls::Until(until) if now < until => true,
            Polls::Until(_) => {
                self.patience.was_in_vain();
                want.polls = Polls::Over;
                false
            }
            _ => false,
        }
    }

    /// A request that a segment can serve.
    fn of_all_classes(&mut self, want: &Want, need: Need, mood: Mood) -> Step {
        let Need { exact, now, left } = need;
        let allowance = self.allowance(exact);
        let too_much = self.held() + exact > allowance;
        // Also if it is not used: a buffer that grows is noticed by it.
        let bytes = self.region_for(exact);
        if mood == Mood::Loose || too_much {
            // Rather a region that is a little too large than more memory than allowed.
            if let Some(block) = self.engine.request_loosely(want.bytes) {
                return Step::Block(block);
            }
        }
        // Sizes differ so much that regions do not fit again. Regions as long as stock's come to rest once there are as many as
        // stock has; with exact growth half as long again as the request, once pins are ahead of stock's. Not longer than a
        // segment: such a region would serve only requests that are longer, too.
        let longer = match self.settings.growth {
            Growth::Segment if too_much || mood == Mood::Loose => exact.next_power_of_two(),
            Growth::Exact if mood == Mood::Loose => exact + exact / 2,
            _ => 0,
        };
        let bytes = bytes.max(longer.min(self.settings.segment_bytes));
        if too_much {
            let beyond = (self.held() + bytes).saturating_sub(allowance);
            self.engine.let_go_least_used(beyond, Of::Segments);
        }
        let allowed = allowance.saturating_sub(self.held());
        let most = match (self.settings.growth, mood) {
            (Growth::Exact, Mood::Loose) => allowed.max(longer),
            _ => allowed,
        };
        let bytes = bytes.min(most.min(left).max(exact));
        let unpin = self.overdue(exact, bytes);
        Step::Pin(self.permit_for(want, bytes, unpin, now))
    }

    /// A request longer than a segment. Its class is stock's, the requests between two powers of two, but
    /// a region is as long as its request. A region of the class that is too short is replaced by one
    /// that is long enough. So a class never has more regions than stock, nor longer ones.
    fn of_its_class(&mut self, want: &Want, need: Need, mood: Mood) -> Step {
        let Need { exact, now, left } = need;
        if let Some(block) = self.engine.request_loosely(want.bytes) {
            return Step::Block(block);
        }
        let most = exact.checked_next_power_of_two().unwrap_or(exact);
        let bytes = if self.engine.let_go_idle_between(most / 2 + 1, exact) {
            exact.saturating_add(self.ahead.slack(exact))
        } else {
            exact
        };
        let beyond = (self.held() + exact).saturating_sub(self.allowance(exact));
        if beyond > 0 && mood == Mood::Well {
            self.engine.let_go_least_used(beyond, Of::All);
        }
        let bytes = Engine::exact_region(bytes.min(most)).unwrap_or(exact);
        let bytes = if bytes <= left { bytes } else { exact };
        let mut unpin = self.overdue(exact, bytes);
        if left - bytes < most {
            // The next request of the class may need the budget before the worker has given it back.
            unpin.extend(self.engine.take_leaving(most, most));
        }
        Step::Pin(self.permit_for(want, bytes, unpin, now))
    }

    /// Regions that were let go and are unpinned before `bytes` more are pinned: only if the worker has not
    /// kept up and too much is pinned, since an unpin waits for running kernels. Exact growth does not wait for
    /// the worker.
    fn overdue(&mut self, exact: usize, bytes: usize) -> Vec<IdleSegment> {
        let late = match self.settings.growth {
            Growth::Segment => self.settings.segment_bytes / 4,
            Growth::Exact => 0,
        };
        let most = self.allowance(exact) + late;
        let beyond = (self.held() + self.engine.leaving_bytes() + bytes).saturating_sub(most);
        self.engine.take_leaving(beyond.min(2 * bytes), usize::MAX)
    }

    pub(super) fn permit_for(
        &mut self,
        want: &Want,
        bytes: usize,
        unpin: Vec<IdleSegment>,
        now: Duration,
    ) -> super::Permit {
        let purpose = Purpose { who: Who::Request, home: want.home, request: want.bytes, working_set: false };
        self.permit(bytes, purpose, unpin, now)
    }
}

pub(super) fn pass_through(unpin: Vec<IdleSegment>, why: Option<Refusal>) -> Step {
    Step::PassThrough { unpin, why }
}
