//! Pinned memory that no stream ever used: pinned for nothing, or copied in a way that waits.

use super::{Finding, Seen, Watch};
use crate::advise::world::World;
use crate::show;
use pinbuddy_events::{Item, Op};

#[derive(Default)]
pub(super) struct Unread {
    requested: u64,
    largest: u64,
    seen: Seen,
}

/// Fewer, or less, is not worth a word.
const LEAST: (u64, u64) = (8, 16 << 20);

impl Unread {
    fn add(&mut self, line: u64, bytes: u64) {
        self.largest = self.largest.max(bytes);
        self.seen.add(line, bytes);
    }
}

impl Watch for Unread {
    fn see(&mut self, item: &Item, world: &World) {
        match item.event.op {
            Op::Request { bytes, .. } => self.requested = self.requested.saturating_add(bytes),
            Op::Free { id, .. } => {
                if let Some(block) = world.live.get(&id)
                    && block.stream.is_none()
                {
                    self.add(block.line, block.bytes);
                }
            }
            _ => {}
        }
    }

    fn finding(&mut self, world: &World) -> Option<Finding> {
        // What lived for half of the trace without being used is not about to be.
        let mut old: Vec<(u64, u64)> = world
            .live
            .values()
            .filter(|it| it.stream.is_none() && it.line <= world.counts.events / 2)
            .map(|it| (it.line, it.bytes))
            .collect();
        old.sort_unstable();
        for (line, bytes) in old {
            self.add(line, bytes);
        }
        if self.seen.count < LEAST.0 || self.seen.bytes < LEAST.1 || self.seen.bytes < self.requested / 10 {
            return None;
        }
        Some(self.seen.found(
            "never_used_by_a_stream",
            "Pinned memory that no stream ever uses",
            format!(
                "{} of {}, {} in all, the largest of {}",
                self.seen.count,
                show::count(world.counts.requests, "request"),
                show::bytes(self.seen.bytes),
                show::bytes(self.largest),
            ),
            "copy it with non_blocking=True, which is what pinned memory is for; if it is not copied at all, do not \
                    pin it",
        ))
    }
}
