//! The line of bytes that is cut into regions: walls stand where regions end, and no block crosses one.
//!
//! A region is unpinned when the cache is emptied while nothing lies in it: so what lives then is cut into parts that go one
//! by one. Knows no lifetimes: where blocks lie [`super::placing`] says.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::file::{MOST_REGION, Plan, Slot};

/// Where regions end: where the longest one would, and at some other places.
#[derive(Clone, Debug, Default)]
pub(super) struct Walls(Vec<u64>);

impl Walls {
    pub(super) fn new(at: impl IntoIterator<Item = u64>) -> Self {
        let mut walls: Vec<u64> = at.into_iter().collect();
        walls.sort_unstable();
        walls.dedup();
        Self(walls)
    }

    /// Where the region begins that has this byte.
    fn begin(&self, at: u64) -> u64 {
        let own = self.0.partition_point(|&wall| wall <= at).checked_sub(1);
        (at - at % MOST_REGION).max(own.map_or(0, |it| self.0[it]))
    }
}

/// The first place from `offset` on at which a block crosses no end of the longest region. What no region holds is nobody's.
pub(super) fn beside_walls(offset: u64, bytes: u64) -> u64 {
    let last = (offset + bytes - 1) / MOST_REGION * MOST_REGION;
    if last <= offset || bytes > MOST_REGION { offset } else { last }
}

/// Whether bytes lie on both sides of a wall.
pub(super) fn crosses(offset: u64, bytes: u64) -> bool {
    beside_walls(offset, bytes) != offset
}

/// Into so many regions at most what lives where the cache is emptied is cut, so that those that are idle are returned.
const MOST_PARTS: u64 = 8;

/// Where a piece of the line may be cut so that no place is: into parts of much the same length, not too many.
pub(super) fn parts(places: impl Iterator<Item = (u64, u64)>, piece: Range<u64>) -> Vec<u64> {
    let mut places: Vec<(u64, u64)> = places.filter(|it| piece.contains(&it.0)).collect();
    places.sort_unstable();
    let least = (piece.end - piece.start).div_ceil(MOST_PARTS);
    let (mut last, mut end) = (piece.start, piece.start);
    let mut cuts = Vec::new();
    for (offset, bytes) in places {
        if offset >= end && offset - last >= least.max(1) {
            cuts.push(offset);
            last = offset;
        }
        end = end.max(offset + bytes);
    }
    cuts
}

/// Cuts the line at its walls, which no place crosses. `places`: offsets and lengths, in the order of first need. Sets
/// regions and slots, each slot once, and answers with the slot of each place.
pub(super) fn cut(plan: &mut Plan, places: &[(u64, u64)], walls: &Walls) -> Vec<u32> {
    let mut region_of = FxHashMap::default();
    let mut slot_of = FxHashMap::default();
    let mut slots = Vec::with_capacity(places.len());
    for &(at, bytes) in places {
        let begin = walls.begin(at);
        let region = *region_of.entry(begin).or_insert_with(|| {
            plan.regions.push(0);
            plan.regions.len() - 1
        });
        let slot = Slot { bytes, region: region as u32, offset: at - begin };
        plan.regions[region] = plan.regions[region].max(slot.offset + bytes);
        slots.push(*slot_of.entry(slot).or_insert_with(|| {
            plan.slots.push(slot);
            plan.slots.len() as u32 - 1
        }));
    }
    slots
}
