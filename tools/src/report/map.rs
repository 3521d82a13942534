//! Where blocks were: pinned memory one piece upon another, and each block in its piece.
//!
//! Pieces are stacked without gaps, so a height in the picture is no address. Knows models only by what they say of
//! themselves: what is pinned, and where a block is.

use std::collections::BTreeMap;

use pinbuddy_plan::file::Slot;
use pinbuddy_replay::policy::Place;
use pinbuddy_replay::replay::{Run, State};
use serde::Serialize;

use super::curve::differences;
use super::recording::Row;
use super::stack::Stack;

/// A piece of pinned memory, or a region of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    height: u64,
    bytes: u64,
    from: u64,
    to: u64,
}

/// Where blocks were, in one allocator.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Map {
    /// The highest end.
    pub height: u64,
    segments: Segments,
    /// Of each of the page's blocks: 0 if it has no place here, else one more than the height where it begins; as
    /// differences to the one before.
    blocks: Vec<i64>,
    /// How many have no place here.
    pub elsewhere: usize,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Segments {
    height: Vec<u64>,
    bytes: Vec<u64>,
    from: Vec<u64>,
    to: Vec<u64>,
}

/// Most of what may be looked at to keep the picture of what is pinned exact; beyond that it is late.
const MOST_LOOKS: u64 = 100_000_000;

/// A map in the making.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    stack: Stack,
    segments: Vec<Segment>,
    /// What is pinned: by its address, its number.
    pinned: BTreeMap<u64, usize>,
    blocks: Vec<Option<u64>>,
    calls: u64,
    looks: u64,
}

impl Mapping {
    /// After a step: what is pinned may have changed.
    pub(super) fn follow(&mut self, run: &dyn Run, at: u64, state: State, surely: bool) {
        if state.calls == self.calls || (self.looks > MOST_LOOKS && !surely) {
            return;
        }
        self.calls = state.calls;
        self.look(run, at);
    }

    fn look(&mut self, run: &dyn Run, at: u64) {
        let mut now = BTreeMap::new();
        run.pinned(&mut |it| {
            now.insert(it.address, it.bytes);
        });
        self.looks += now.len() as u64;
        let gone = self.pinned.extract_if(.., |it, _| !now.contains_key(it));
        for (_, number) in gone {
            self.segments[number].to = at;
            self.stack.take(self.segments[number].height);
        }
        for (address, bytes) in now {
            self.pinned.entry(address).or_insert_with(|| {
                self.segments.push(Segment {
                    height: self.stack.put(bytes),
                    bytes,
                    from: at,
                    to: u64::MAX,
                });
                self.segments.len() - 1
            });
        }
    }

    /// The block was just served.
    pub(super) fn place(&mut self, run: &dyn Run, at: u64, row: &Row) {
        let Some(place) = run.place(row.number) else {
            self.blocks.push(None);
            return;
        };
        let mut height = self.height(place);
        if height.is_none() {
            self.look(run, at);
            height = self.height(place);
        }
        self.blocks.push(height);
    }

    fn height(&self, place: Place) -> Option<u64> {
        let (address, number) = self.pinned.range(..=place.address).next_back()?;
        let segment = self.segments[*number];
        let offset = place.address - address;
        (offset + place.bytes <= segment.bytes).then_some(segment.height + offset)
    }

    /// Done; so many further blocks have no place.
    pub(super) fn end(mut self, at: u64, missing: usize) -> Map {
        self.blocks.resize(self.blocks.len() + missing, None);
        for segment in &mut self.segments {
            segment.to = segment.to.min(at);
        }
        made(self.stack.height, &self.segments, &self.blocks)
    }
}

/// The map of a plan: its regions, pinned from the beginning to the end, and the slots of blocks.
pub(super) fn of_plan(regions: &[u64], slots: &[Option<Slot>], end: u64) -> Map {
    let mut stack = Stack::default();
    let segment = |bytes: &u64| Segment {
        height: stack.put(*bytes),
        bytes: *bytes,
        from: 0,
        to: end,
    };
    let segments: Vec<_> = regions.iter().map(segment).collect();
    let height = |slot: &Slot| segments[slot.region as usize].height + slot.offset;
    let blocks: Vec<_> = slots
        .iter()
        .map(|slot| slot.as_ref().map(height))
        .collect();
    made(stack.height, &segments, &blocks)
}

fn made(height: u64, segments: &[Segment], blocks: &[Option<u64>]) -> Map {
    let column = |of: fn(&Segment) -> u64| segments.iter().map(of).collect();
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
    }
}
