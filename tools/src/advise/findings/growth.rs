//! Memory that grows without end: the least that is live in a while rises all the time, though blocks come and go.

use super::{Finding, Seen, Watch};
use crate::advise::world::World;
use crate::show;
use pinbuddy_events::Item;

/// Into how many parts a trace is divided.
const PARTS: u64 = 32;

#[derive(Default)]
pub(super) struct Growth {
    /// Of each part, the least that was live, and the line where that was.
    least: Vec<(u64, u64)>,
    part: u64,
}

impl Watch for Growth {
    fn see(&mut self, item: &Item, world: &World) {
        // Parts of so many iterations, or else of so many events.
        let all = &world.counts;
        let part = match all.iterations {
            PARTS.. => world.iterations * PARTS / all.iterations,
            _ => item.line * PARTS / all.events.max(1),
        };
        let now = (world.live_bytes, item.line);
        match self.least.last_mut() {
            Some(least) if part == self.part => *least = now.min(*least),
            _ => self.least.push(now),
        }
        self.part = part;
    }

    fn finding(&mut self, world: &World) -> Option<Finding> {
        // The begin fills up, and the end tidies up.
        let (all, parts) = (&world.counts, self.least.len());
        let churns = all.requests >= 256 && all.frees >= all.requests / 2;
        if !churns || parts < 16 {
            return None;
        }
        let middle = &self.least[parts / 3..parts - 2];
        let rising = middle.windows(2).filter(|it| it[1].0 > it[0].0).count();
        let (from, to) = (*middle.first()?, *middle.last()?);
        let grown = to.0.saturating_sub(from.0);
        if rising * 10 < (middle.len() - 1) * 9 || grown < 16 << 20 || grown < from.0 / 4 {
            return None;
        }
        let each = grown / middle.len() as u64;
        let per = if all.iterations >= PARTS {
            let iterations = all.iterations.div_ceil(PARTS);
            format!("about {} an iteration", show::bytes(each / iterations))
        } else {
            format!("about {} for every {} events", show::bytes(each), all.events / PARTS)
        };
        let seen = Seen { count: middle.len() as u64, bytes: grown, lines: vec![from.1, to.1] };
        Some(seen.found(
            "grows_without_end",
            "Pinned memory grows without end",
            format!(
                "the least that is live rises from {} to {}, {per}, while blocks come and go",
                show::bytes(from.0),
                show::bytes(to.0),
            ),
            "look for what keeps tensors alive: lists that are appended to, graphs that are kept, caches without a \
                    limit",
        ))
    }
}
