//! What is left for a request that the budget or the driver refused: room among blocks of the other
//! class, idle memory given back for a region of exactly the request, and then it is upstream's.

use std::time::Duration;

use crate::engine::Engine;

use super::room::pass_through;
use super::want::Resort;
use super::{Provisioner, Refusal, Step, Want};

impl Provisioner {
    pub(super) fn last_resort(
        &mut self,
        want: &mut Want,
        exact: usize,
        now: Duration,
        left: usize,
    ) -> Step {
        if let Some(block) = self.engine.request_anywhere(want.bytes) {
            return Step::Block(block);
        }
        // What was to be unpinned behind the program stands in the way now: as much as it takes, and all
        // that the driver may need where it said no.
        let needed = match want.refused {
            None => exact.saturating_sub(left),
            Some(_) => usize::MAX,
        };
        let mut unpin = self.engine.take_leaving(needed, usize::MAX);
        let gone: usize = unpin.iter().map(|it| it.region().bytes).sum();
        let refusal = want.refused.map_or(Refusal::Budget, |(why, _)| why);
        let short = exact.saturating_sub(left.saturating_add(gone));
        if short == 0 && gone > 0 {
            return Step::Pin(self.order_for(want, exact, unpin, now));
        }
        // Less than was refused may be had as it is; the same again would be refused again.
        let less = want.refused.is_some_and(|(_, bytes)| exact < bytes);
        if short == 0 && less {
            return Step::Pin(self.order_for(want, exact, Vec::new(), now));
        }
        if short > self.engine.idle_region_bytes() {
            // Upstream will pin as much and more: what is idle makes way before the machine is short.
            unpin.extend(self.engine.take_idle(exact));
            return pass_through(unpin, Some(Refusal::Budget));
        }
        // What grows finds the budget full of regions that are a little too short, at each step: room for its
        // growth here as well, as far as they make room for it.
        let room = if want.refused.is_none() && short > 0 {
            let stocks = exact.checked_next_power_of_two().unwrap_or(exact);
            let wanted = self.region_with_room(exact).min(stocks).max(exact);
            Engine::exact_region(wanted).unwrap_or(exact)
        } else {
            exact
        };
        // First as much as it takes. What the driver calls free may lie in pieces: then all of it.
        let some = if short > 0 {
            short + (room - exact)
        } else {
            exact
        };
        for (resort, bytes) in [(Resort::SomeIdle, some), (Resort::AllIdle, usize::MAX)] {
            if want.resort < resort {
                want.resort = resort;
                unpin.extend(self.engine.take_idle(bytes));
                if !unpin.is_empty() {
                    let gone: usize = unpin.iter().map(|it| it.region().bytes).sum();
                    let room = room.min(left.saturating_add(gone)).max(exact);
                    return Step::Pin(self.order_for(want, room, unpin, now));
                }
            }
        }
        pass_through(unpin, Some(refusal))
    }
}
