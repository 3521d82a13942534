//! Device memory in pieces: sizes vary, and the allocator has reserved far more than is live, since what is free lies
//! between blocks and in segments of other sizes.

use std::collections::HashSet;

use super::{Finding, Seen, Watch};
use crate::advise::world::World;
use crate::show;
use pinbuddy_events::{Item, Op};

/// Smaller requests share segments of 2 MiB.
const SMALLEST: u64 = 1 << 20;

/// So many sizes vary; beyond, they are not counted.
const SIZES: usize = 32;

/// More than so many parts in twenty of what is live, and so many bytes, is far above it.
const TWENTIETHS: u64 = 24;
const LEAST: u64 = 256 << 20;

#[derive(Default)]
pub(super) struct Pieces {
    sizes: HashSet<u64>,
    reserved: u64,
    /// The most that was reserved, and the most that was live.
    most: u64,
    live: u64,
    /// Segments that were reserved though as much was free.
    seen: Seen,
}

impl Watch for Pieces {
    fn see(&mut self, item: &Item, world: &World) {
        match item.event.op {
            Op::SegmentAlloc { bytes } => {
                let free = self.reserved.saturating_sub(world.live_bytes);
                if self.reserved > 0 && free >= bytes {
                    self.seen.add(item.line, 0);
                }
                self.reserved = self.reserved.saturating_add(bytes);
                self.most = self.most.max(self.reserved);
            }
            Op::SegmentFree { bytes } => self.reserved = self.reserved.saturating_sub(bytes),
            Op::Request { bytes, .. } => {
                self.live = self.live.max(world.live_bytes.saturating_add(bytes));
                if bytes > SMALLEST && self.sizes.len() < SIZES {
                    self.sizes.insert(bytes);
                }
            }
            _ => {}
        }
    }

    fn finding(&mut self, _world: &World) -> Option<Finding> {
        let above = self.most.saturating_sub(self.live);
        let is_far = self.most / TWENTIETHS * 20 > self.live && above >= LEAST;
        if !is_far || self.seen.count == 0 || self.sizes.len() < SIZES {
            return None;
        }
        self.seen.bytes = above;
        Some(self.seen.found(
            "reserved_far_above_requested",
            "Device memory lies in pieces: sizes vary, and much more is reserved than is in use",
            format!(
                "{} reserved at most, {} in use at most, {SIZES} sizes or more above {}; {} reserved though as much was free",
                show::bytes(self.most),
                show::bytes(self.live),
                show::bytes(SMALLEST),
                show::count_of(self.seen.count, "segment was", "segments were"),
            ),
            "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, unless memory is shared between processes; where \
                    requests come again, a plan for device memory leaves still less idle",
        ))
    }
}
