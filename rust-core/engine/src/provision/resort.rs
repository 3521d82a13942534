//! The last resorts of a request that the budget or the driver refused: a place among blocks of the
//! other class, then one at another home, then idle regions unpinned for a region of its own; else upstream serves it.

use crate::engine::Engine;
use crate::handover::IdleSegment;
use crate::units::Block;

use super::grow::{Need, pass_through};
use super::want::Resort;
use super::{Provisioner, Refusal, Step, Want};

impl Provisioner {
    pub(super) fn last_resort(&mut self, want: &mut Want, need: Need) -> Step {
        let Need { exact, now, left } = need;
        if let Some(block) = self.block_anywhere(want.bytes) {
            return Step::Block(block);
        }
        // Regions that were let go are unpinned now: as many as the budget needs, or all of them if the
        // driver refused.
        let needed = match want.refused {
            None => exact.saturating_sub(left),
            Some(_) => usize::MAX,
        };
        let mut unpin = self.engine.take_leaving(needed, usize::MAX);
        let gone = bytes_of(&unpin);
        let refusal = want.refused.map_or(Refusal::Budget, |(why, _)| why);
        let short = exact.saturating_sub(left.saturating_add(gone));
        if short == 0 && gone > 0 {
            return Step::Pin(self.permit_for(want, exact, unpin, now));
        }
        // A shorter region than the refused one may succeed; the same would be refused again.
        let less = want.refused.is_some_and(|(_, bytes)| exact < bytes);
        if short == 0 && less {
            return Step::Pin(self.permit_for(want, exact, Vec::new(), now));
        }
        if short > self.engine.idle_region_bytes() {
            // Upstream will pin as much or more: unpin before the machine is short of memory.
            unpin.extend(self.engine.take_idle(exact));
            return pass_through(unpin, Some(Refusal::Budget));
        }
        let room = if want.refused.is_none() && short > 0 { self.room_with_slack(exact) } else { exact };
        // First as much as needed. The driver's free memory may be fragmented: then all of it.
        let some = if short > 0 { short + (room - exact) } else { exact };
        for (resort, bytes) in [(Resort::SomeIdle, some), (Resort::AllIdle, usize::MAX)] {
            if want.resort < resort {
                want.resort = resort;
                unpin.extend(self.engine.take_idle(bytes));
                if !unpin.is_empty() {
                    let room = room.min(left.saturating_add(bytes_of(&unpin))).max(exact);
                    return Step::Pin(self.permit_for(want, room, unpin, now));
                }
            }
        }
        pass_through(unpin, Some(refusal))
    }

    /// A block wherever there is one, also at other homes: a request of this size that passes through has found
    /// none at any.
    pub(super) fn block_anywhere(&mut self, bytes: usize) -> Option<Block> {
        let here = self.engine.request_anywhere(bytes);
        here.or_else(|| self.engine.request_elsewhere(bytes))
    }

    /// The length of a region in a full budget, in bytes. A buffer that grows would find the budget full of regions a
    /// little too short at each step: its region gets slack here too, as far as unpinned regions leave room for it.
    fn room_with_slack(&mut self, exact: usize) -> usize {
        let stocks = exact.checked_next_power_of_two().unwrap_or(exact);
        let segment = self.settings.segment_bytes;
        let most = if exact <= segment {
            // A longer region would serve only requests that are longer than a segment, too.
            stocks.min(segment)
        } else {
            stocks
        };
        let wanted = self.region_with_slack(exact).min(most).max(exact);
        Engine::exact_region(wanted).unwrap_or(exact)
    }
}

pub(super) fn bytes_of(regions: &[IdleSegment]) -> usize {
    regions.iter().map(|it| it.region().bytes).sum()
}
