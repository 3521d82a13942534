//! Pinned blocks that are freed before anything else happens: each is pinned, or cut, for one copy or for none.

use super::{Finding, Seen, Watch};
use crate::advise::world::World;
use crate::show;
use pinbuddy_events::{Item, Op};

/// Fewer, less, or a smaller part of what is requested, is not worth a word.
const LEAST: (u64, u64) = (64, 64 << 20);
const PART: u64 = 4;

#[derive(Default)]
pub(super) struct Brief {
    requested: u64,
    /// The last request, if nothing but uses of its block came since.
    last: Option<u64>,
    unused: u64,
    seen: Seen,
}

impl Watch for Brief {
    fn see(&mut self, item: &Item, world: &World) {
        match item.event.op {
            Op::Request { id, bytes, .. } => {
                self.requested = self.requested.saturating_add(bytes);
                self.last = Some(id);
            }
            Op::Free { id, .. } if self.last == Some(id) => {
                self.last = None;
                if let Some(block) = world.live.get(&id) {
                    self.unused += u64::from(block.stream.is_none());
                    self.seen.add(block.line, item.bytes);
                }
            }
            Op::Use { id, .. } if self.last == Some(id) => {}
            // What the allocator does meanwhile.
            Op::Wait { .. } | Op::Safe { .. } | Op::SegmentAlloc { .. } | Op::SegmentFree { .. } | Op::Node { .. } => {}
            _ => self.last = None,
        }
    }

    fn finding(&mut self, world: &World) -> Option<Finding> {
        let little = self.seen.count < LEAST.0 || self.seen.bytes < LEAST.1;
        if little || self.seen.bytes < self.requested / PART {
            return None;
        }
        Some(self.seen.found(
            "pinned_and_freed_at_once",
            "Pinned memory is freed as soon as it was taken",
            format!(
                "{} of {}, {} in all, before anything else happened; {} of them no stream used",
                self.seen.count,
                show::count(world.counts.requests, "request"),
                show::bytes(self.seen.bytes),
                self.unused,
            ),
            "pin once and copy from there with non_blocking=True: memory that is pinned for one copy is first copied \
                    to by the processor, which takes longer than a copy that is not pinned saves",
        ))
    }
}
