//! Where blocks were: pinned memory one piece upon another, and each block in its piece.
//!
//! Pieces are stacked without gaps, so a height in the picture is no address (`lay` has those of snapshots). Knows models only by what they say of
//! themselves: what is pinned, and where a block is.

use std::collections::BTreeMap;

use pinbuddy_plan::file::Slot;
use pinbuddy_replay::policy::{Change, Place};
use serde::Serialize;

use super::curve::differences;
use super::gaps::{Fragmentation, fragmentation};
use super::recording::Recording;
use super::stack::Stack;
use super::tables;

/// A piece of pinned memory, or a region of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) height: u64,
    pub(super) bytes: u64,
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Segment {
    pub(super) fn new(height: u64, bytes: u64, from: u64, to: u64) -> Self {
        Self { height, bytes, from, to }
    }
}

/// Where a block lies in the picture, and how much of it it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) height: u64,
    pub(super) bytes: u64,
}

/// Where blocks were, in one allocator.
#[derive(Clone, Debug, Serialize)]
pub struct Map {
    /// The highest end.
    pub height: u64,
    segments: Segments,
    /// Of each of the page's blocks: 0 if it has no place here, else one more than the height where it begins; as
    /// differences to the one before.
    blocks: Vec<i64>,
    /// How many have no place here.
    pub elsewhere: usize,
    /// What of it is not live, of all blocks and not only the page's; none where no block has a place.
    fragmentation: Option<Fragmentation>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Segments {
    height: Vec<u64>,
    bytes: Vec<u64>,
    from: Vec<u64>,
    to: Vec<u64>,
}

/// A map in the making.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    stack: Stack,
    segments: Vec<Segment>,
    /// What is pinned: by its address, its number.
    pinned: BTreeMap<u64, usize>,
    blocks: Vec<Option<Placed>>,
}

impl Mapping {
    /// What was pinned and unpinned by a step.
    pub(super) fn follow(&mut self, changes: &[Change], at: u64) {
        for Change { place, pinned } in changes {
            if *pinned {
                self.pinned.insert(place.address, self.segments.len());
                let height = self.stack.put(place.bytes);
                let segment = Segment::new(height, place.bytes, at, u64::MAX);
                self.segments.push(segment);
            } else if let Some(number) = self.pinned.remove(&place.address) {
                self.segments[number].to = at;
                let Segment { height, bytes, .. } = self.segments[number];
                self.stack.take(height, bytes);
            }
        }
    }

    /// A block was just served.
    pub(super) fn place(&mut self, place: Option<Place>) {
        self.blocks.push(place.and_then(|it| self.placed(it)));
    }

    fn placed(&self, place: Place) -> Option<Placed> {
        let (address, number) = self.pinned.range(..=place.address).next_back()?;
        let segment = self.segments[*number];
        let offset = place.address - address;
        (offset + place.bytes <= segment.bytes)
            .then_some(Placed { height: segment.height + offset, bytes: place.bytes })
    }

    /// Done; further rows have no place. The map has those of `shown`.
    pub(super) fn end(mut self, recording: &Recording, shown: &[usize]) -> Map {
        self.blocks.resize(recording.rows.len(), None);
        for segment in &mut self.segments {
            segment.to = segment.to.min(recording.end);
        }
        let (height, segments) = (self.stack.height, &self.segments);
        made(height, segments, &self.blocks, recording, shown)
    }
}

/// The map of a plan: its regions, pinned from the beginning to the end, and the slots of blocks.
pub(super) fn of_plan(regions: &[u64], slots: &[Option<Slot>], recording: &Recording, shown: &[usize]) -> Map {
    let mut stack = Stack::default();
    let segment = |bytes: &u64| Segment::new(stack.put(*bytes), *bytes, 0, recording.end);
    let segments: Vec<_> = regions.iter().map(segment).collect();
    let placed =
        |slot: &Slot| Placed { height: segments[slot.region as usize].height + slot.offset, bytes: slot.bytes };
    let blocks: Vec<_> = slots.iter().map(|slot| slot.as_ref().map(placed)).collect();
    made(stack.height, &segments, &blocks, recording, shown)
}

/// The map of these; each of the file's rows has its place, if it has one, and those of `shown` are the page's.
pub(super) fn made(
    height: u64,
    segments: &[Segment],
    placed: &[Option<Placed>],
    recording: &Recording,
    shown: &[usize],
) -> Map {
    let column = |of: fn(&Segment) -> u64| segments.iter().map(of).collect();
    let blocks: Vec<Option<u64>> = shown.iter().map(|row| Some(placed[*row]?.height)).collect();
    let moments = (tables::peak(&recording.rows).0.0, recording.end);
    let has_any = placed.iter().any(Option::is_some);
    Map {
        height,
        segments: Segments {
            height: column(|it| it.height),
            bytes: column(|it| it.bytes),
            from: column(|it| it.from),
            to: column(|it| it.to),
        },
        // One more than the height, so that 0 is left for those without a place.
        blocks: differences(blocks.iter().map(|it| it.map_or(0, |it| it + 1))),
        elsewhere: blocks.iter().filter(|it| it.is_none()).count(),
        fragmentation: has_any.then(|| fragmentation(segments, &recording.rows, placed, moments)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::recording::{empty, row};

    /// So many rows, with nothing in them.
    fn rows(count: usize, end: u64) -> Recording {
        Recording { rows: vec![row(4, 1, u64::MAX, u64::MAX); count], end, ..empty() }
    }

    fn place(address: u64, bytes: u64) -> Place {
        Place { address, bytes }
    }

    #[test]
    fn blocks_are_where_their_segments_are_put() {
        let mut mapping = Mapping::default();
        let change = |address, bytes, pinned| Change { place: place(address, bytes), pinned };
        let both = [change(1000, 10, true), change(5000, 20, true)];
        mapping.follow(&both, 1);
        [Some(place(5004, 8)), None].into_iter().for_each(|it| mapping.place(it));
        let other = [change(1000, 10, false), change(9000, 6, true)];
        mapping.follow(&other, 2);
        [place(9000, 6), place(1000, 10)].into_iter().for_each(|it| mapping.place(Some(it)));
        let map = mapping.end(&rows(5, 7), &[0, 1, 2, 3, 4]);
        assert_eq!((map.height, map.elsewhere), (30, 3));
        assert_eq!(map.segments.height, [0, 10, 0]);
        assert_eq!(map.segments.to, [2, 7, 7]);
        // 15 and 1 above 0, as differences.
        assert_eq!(map.blocks, [15, -15, 1, -1, 0]);
    }

    #[test]
    fn regions_of_a_plan_lie_upon_one_another() {
        let slot = |region, offset| Some(Slot { bytes: 4, region, offset });
        let slots = [slot(1, 8), None, slot(0, 8)];
        let map = of_plan(&[100, 50], &slots, &rows(3, 9), &[0, 1, 2]);
        assert_eq!((map.height, map.elsewhere), (150, 1));
        assert_eq!(map.blocks, [109, -109, 9]);
        assert_eq!(map.segments.to, [9, 9]);
    }
}
