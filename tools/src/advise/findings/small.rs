//! Many small pinned blocks that live for almost all of the program.

use super::{Finding, Seen, Watch};
use crate::advise::world::{Block, World};
use crate::show;
use pinbuddy_events::{Item, Op};

#[derive(Default)]
pub(super) struct Small {
    seen: Seen,
}

/// The longest that is small.
const LONGEST: u64 = 1 << 20;

/// Fewer are not worth a word.
const LEAST: u64 = 256;

impl Small {
    fn add(&mut self, block: &Block, until: u64, world: &World) {
        // Most of the trace, and from its first half on.
        let (lived, half) = (until - block.line, world.counts.events / 2);
        if block.bytes <= LONGEST && lived >= half && block.line <= half {
            self.seen.add(block.line, block.bytes);
        }
    }
}

impl Watch for Small {
    fn see(&mut self, item: &Item, world: &World) {
        if let Op::Free { id, .. } = item.event.op
            && let Some(block) = world.live.get(&id)
        {
            self.add(block, item.line, world);
        }
    }

    fn finding(&mut self, world: &World) -> Option<Finding> {
        let mut left: Vec<&Block> = world.live.values().collect();
        left.sort_unstable_by_key(|it| it.line);
        for block in left {
            self.add(block, world.line, world);
        }
        if self.seen.count < LEAST {
            return None;
        }
        Some(self.seen.found(
            "many_small_long_lived_blocks",
            "Many small pinned blocks live for most of the program",
            format!(
                "{} of at most {}, {} in all, {} on average",
                show::count(self.seen.count, "block"),
                show::bytes(LONGEST),
                show::bytes(self.seen.bytes),
                show::bytes(self.seen.bytes / self.seen.count),
            ),
            "take one pinned buffer and give out slices of it, then empty the cache once",
        ))
    }
}
