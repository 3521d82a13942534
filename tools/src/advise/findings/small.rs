//! Many small pinned blocks that live for almost all of the program.

use super::{Examples, Finding, Watch};
use crate::advise::world::{Block, Counts, World};
use crate::show;
use pinbuddy_events::{Item, Op};

#[derive(Default)]
pub(super) struct Small {
    events: u64,
    count: u64,
    bytes: u64,
    examples: Examples,
}

/// The longest that is small.
const LONGEST: u64 = 1 << 20;

/// Fewer are not worth a word.
const LEAST: u64 = 256;

impl Small {
    pub(super) fn new(counts: &Counts) -> Self {
        Self {
            events: counts.events,
            ..Self::default()
        }
    }

    fn add(&mut self, block: &Block, until: u64) {
        // Most of the trace, and from its first half on.
        let lived = until - block.line;
        if block.bytes <= LONGEST && lived >= self.events / 2 && block.line <= self.events / 2 {
            self.count += 1;
            self.bytes += block.bytes;
            self.examples.add(block.line);
        }
    }
}

impl Watch for Small {
    fn see(&mut self, item: &Item, world: &World) {
        if let Op::Free { id, .. } = item.event.op
            && let Some(block) = world.live.get(&id)
        {
            self.add(block, item.line);
        }
    }

    fn finding(&mut self, world: &World) -> Option<Finding> {
        let mut left: Vec<&Block> = world.live.values().collect();
        left.sort_unstable_by_key(|it| it.line);
        for block in left {
            self.add(block, world.line);
        }
        if self.count < LEAST {
            return None;
        }
        Some(Finding {
            id: "many_small_long_lived_blocks",
            what: "Many small pinned blocks live for most of the program",
            evidence: format!(
                "{} of at most {}, {} in all, {} on average",
                show::count(self.count, "block"),
                show::bytes(LONGEST),
                show::bytes(self.bytes),
                show::bytes(self.bytes / self.count),
            ),
            count: self.count,
            bytes: self.bytes,
            lines: self.examples.0.clone(),
            to_do: "take one pinned buffer and give out slices of it, then empty the cache once"
                .to_owned(),
        })
    }
}
