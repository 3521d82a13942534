//! The cache is emptied inside the loop, and the same memory is pinned again: what each time cost with stock.

use pinbuddy_replay::policy::Policy as _;
use pinbuddy_replay::policy::stock::Stock;
use pinbuddy_replay::replay::Replay;

use super::{Finding, Seen, Watch};
use crate::advise::world::World;
use crate::show;
use pinbuddy_events::{Item, Op};
use pinbuddy_replay::step::Step;

/// What was pinned again after a clear.
#[derive(Clone, Copy, Debug, Default)]
struct After {
    given_back: u64,
    pinned: u64,
    pins: u64,
}

#[derive(Default)]
pub(super) struct Clears {
    stock: Replay<Stock>,
    /// The last clear: what was pinned right after it, and how many pins there had been.
    last: Option<(u64, u64, After)>,
    /// What was given back in all, and in how many pins it came again.
    given_back: u64,
    pins: u64,
    /// Iterations with a costly clear.
    within: u64,
    latest: Option<u64>,
    seen: Seen,
    line: u64,
}

/// A clear that gave back less cost nothing to speak of.
const LEAST: u64 = 1 << 20;

impl Clears {
    /// The time after the last clear is over.
    fn settle(&mut self, iteration: u64) {
        let Some((.., after)) = self.last.take() else {
            return;
        };
        if after.given_back < LEAST || after.pinned < LEAST {
            return;
        }
        self.seen.add(self.line, after.pinned);
        self.given_back += after.given_back;
        self.pins += after.pins;
        if self.latest != Some(iteration) {
            self.latest = Some(iteration);
            self.within += 1;
        }
    }
}

impl Watch for Clears {
    fn see(&mut self, item: &Item, world: &World) {
        let clear = item.event.op == Op::Clear;
        if clear {
            self.settle(world.iterations);
        }
        let before = self.stock.policy().pins();
        if let Some(step) = Step::of(item) {
            self.stock.step(step);
        }
        let now = self.stock.policy().pins();
        if clear {
            let given_back = before.bytes - now.bytes;
            self.last = Some((now.bytes, now.pins, After { given_back, ..After::default() }));
            self.line = item.line;
        } else if let Some((bytes, pins, after)) = &mut self.last {
            // What it had before; more is growth, and not the clear's doing.
            let again = now.bytes.saturating_sub(*bytes).min(after.given_back);
            if again > after.pinned {
                after.pinned = again;
                after.pins = now.pins - *pins;
            }
        }
    }

    fn finding(&mut self, world: &World) -> Option<Finding> {
        self.settle(world.iterations);
        // Between two phases, or before the first iteration, it is as it should be.
        let enough = if world.counts.iterations >= 2 { self.within >= 2 } else { self.seen.count >= 3 };
        if !enough {
            return None;
        }
        let (each, pins) = (self.seen.bytes / self.seen.count, self.pins / self.seen.count);
        let inside = match world.counts.iterations {
            0 | 1 => String::new(),
            all => format!(" in {} of {all} iterations", self.within),
        };
        Some(self.seen.found(
            "clears_inside_iterations",
            "The cache is emptied inside the loop, and the same memory is pinned again",
            format!(
                "{}{inside}; after each one stock pins {} again on average, in {}, and gives back {}; emptying also waits \
                 for all streams",
                show::count(self.seen.count, "empty_cache call"),
                show::bytes(each),
                show::count(pins, "call"),
                show::bytes(self.given_back / self.seen.count),
            ),
            "empty the cache between phases only (after initialisation, between training and evaluation), never in \
                    the loop",
        ))
    }
}
