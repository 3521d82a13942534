//! The line of bytes that is cut into regions: walls stand where regions end, and no block crosses one.
//!
//! A region is unpinned when the cache is emptied while nothing lies in it. So where a program does that, what lives then
//! is placed apart from all else, with a wall between, unless that takes more memory; and in parts that go one by one.

use std::ops::Range;

use super::spans::Spans;
use super::{Options, Seen, Watch};
use crate::file::{MOST_REGION, Plan, Slot};
use crate::solve::first_fit;
use crate::{Block, Effort, Instance, solve};

/// A solution is good enough at so many thousandths above the bound.
const GOOD_ENOUGH: u64 = 1;

/// What lives where the cache is emptied has regions of its own if that takes at most one part in so many more.
const MOST_FOR_A_WALL: u64 = 100;

/// The same where it is not known that the cache is emptied.
const MOST_UNASKED: u64 = 1000;

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

    /// The first place from `offset` on at which a block crosses no wall.
    pub(super) fn beside(&self, offset: u64, bytes: u64) -> u64 {
        let mut offset = offset;
        loop {
            let begin = self.begin(offset + bytes - 1);
            // What no region holds is nobody's: it would cross walls for ever.
            if begin <= offset || bytes > MOST_REGION {
                return offset;
            }
            offset = begin;
        }
    }
}

/// Whether bytes lie on both sides of a wall.
fn crosses(offset: u64, bytes: u64) -> bool {
    Walls::default().beside(offset, bytes) != offset
}

/// The first place from `offset` on at which a block crosses no end of the longest region.
pub(super) fn beside_walls(offset: u64, bytes: u64) -> u64 {
    Walls::default().beside(offset, bytes)
}

/// Blocks of a group on the line.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// In the order of [`Spans::blocks`].
    pub(super) offsets: Vec<u64>,
    /// The first byte after all.
    pub(super) end: u64,
    /// The least bytes that any placement takes.
    pub(super) bound: u64,
    /// Below it lies what lives where the cache may be emptied; none if nothing is apart.
    pub(super) wall: Option<u64>,
    /// Whether parts of it should be given back by themselves.
    pub(super) is_apart: bool,
}

/// How many turns are tried.
const MOST_TURNS: u64 = 8;

/// With how many blocks they are tried.
const MOST_TRIED: u64 = 1 << 15;

/// Where first fit does not come near the bound of a group, looks for turns and room with which it does.
///
/// Three that live at once on a circle of seven need a fourth place, but not on one of 21: three turns. And
/// where one is a little shorter than all others, others that begin at its end go astray: it gets as much room,
/// if that does not raise the bound.
pub(super) fn ease(spans: &mut Spans<'_>, options: &Options, watch: Watch<'_>) {
    let (fewest, plain) = (spans.turns, spans.room.clone());
    let most = if spans.cross() { MOST_TURNS } else { fewest };
    let good = enough(spans.bound());
    let mut tries = vec![plain.clone()];
    spans.make_room();
    if spans.room != plain && spans.bound() <= good {
        tries.push(spans.room.clone());
    }
    let mut best = (u64::MAX, fewest, plain);
    for turns in fewest..=most.max(fewest) {
        spans.turns = turns;
        for room in &tries {
            spans.room.clone_from(room);
            let tried = best.0 < u64::MAX;
            let blocks = turns * spans.spans.len() as u64;
            if best.0 <= good || blocks > MOST_TRIED || tried && (watch.stop)() {
                break;
            }
            let peak = lowest(spans, good, options, watch);
            if peak + peak / 1000 * GOOD_ENOUGH < best.0 {
                best = (peak, turns, room.clone());
            }
        }
    }
    (_, spans.turns, spans.room) = best;
}

fn lowest(spans: &Spans<'_>, good: u64, options: &Options, watch: Watch<'_>) -> u64 {
    let bound = spans.bound();
    let effort = Effort {
        joins: false,
        threads: options.threads,
        stop: watch.stop,
        seen: &|peak| (watch.seen)(Seen { peak, bound }),
    };
    spans
        .instance()
        .map_or(u64::MAX, |it| first_fit(&it, good, effort))
}

/// A placement that is no higher is good enough.
fn enough(bound: u64) -> u64 {
    bound / 1000 * (1000 + GOOD_ENOUGH)
}

/// Places a group from `base` on; `across` says which of its spans live where the cache may be emptied.
pub(super) fn place(
    spans: &Spans<'_>,
    across: Option<&[bool]>,
    base: u64,
    options: &Options,
    watch: Watch<'_>,
) -> Placed {
    let blocks = spans.blocks();
    let mut together = place_some(spans, &blocks, |_| true, base, options, watch);
    let Some(across) = across.filter(|it| !it.is_empty()) else {
        return together;
    };
    together.is_apart = true;
    // By turns.
    let lives = |at: usize| across[at % across.len()];
    let mut first = place_some(spans, &blocks, lives, base, options, watch);
    let rest = place_some(spans, &blocks, |at| !lives(at), first.end, options, watch);
    let length = together.end - base;
    let most = if options.device {
        MOST_UNASKED
    } else {
        MOST_FOR_A_WALL
    };
    if rest.end - base > length + length / most {
        return together;
    }
    for (at, offset) in rest.offsets.into_iter().enumerate() {
        if !lives(at) {
            first.offsets[at] = offset;
        }
    }
    Placed {
        wall: Some(first.end),
        is_apart: true,
        end: rest.end,
        bound: together.bound,
        offsets: first.offsets,
    }
}

/// Places the blocks that are `chosen` from `base` on. What crosses a wall is placed anew after all others.
fn place_some(
    spans: &Spans<'_>,
    blocks: &[Block],
    chosen: impl Fn(usize) -> bool,
    base: u64,
    options: &Options,
    watch: Watch<'_>,
) -> Placed {
    let mut placed = Placed {
        offsets: vec![0; blocks.len()],
        end: base,
        ..Placed::default()
    };
    let mut left: Vec<usize> = (0..blocks.len()).filter(|&at| chosen(at)).collect();
    while !left.is_empty() {
        let some: Vec<Block> = left.iter().map(|&at| blocks[at]).collect();
        let Ok(instance) = Instance::cyclic(some, spans.period()) else {
            // More bytes than any machine has: nothing is placed.
            return Placed {
                end: base,
                ..Placed::default()
            };
        };
        let good = enough(instance.lower_bound());
        // What crossed a wall comes on top.
        let (below, bound) = (placed.end - base, placed.bound.max(instance.lower_bound()));
        let best = std::sync::atomic::AtomicU64::new(u64::MAX);
        let order = std::sync::atomic::Ordering::Relaxed;
        let solution = solve(
            &instance,
            Effort {
                joins: false,
                threads: options.threads,
                stop: &|| best.load(order) <= good || (watch.stop)(),
                seen: &|peak| {
                    best.store(peak, order);
                    let peak = below + peak;
                    (watch.seen)(Seen { peak, bound });
                },
            },
        );
        // What no region holds is cut anyway.
        let base = if solution.peak > MOST_REGION {
            placed.end
        } else {
            beside_walls(placed.end, solution.peak)
        };
        if placed.bound == 0 {
            placed.bound = solution.bound;
        }
        let mut crossing = Vec::new();
        for (&at, offset) in left.iter().zip(&solution.offsets) {
            let offset = base + offset;
            if crosses(offset, blocks[at].size) {
                crossing.push(at);
            } else {
                placed.offsets[at] = offset;
                placed.end = placed.end.max(offset + blocks[at].size);
            }
        }
        left = crossing;
    }
    placed
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
    let mut region_of = std::collections::HashMap::new();
    let mut slot_of = std::collections::HashMap::new();
    let mut slots = Vec::with_capacity(places.len());
    for &(at, bytes) in places {
        let begin = walls.begin(at);
        let region = *region_of.entry(begin).or_insert_with(|| {
            plan.regions.push(0);
            plan.regions.len() - 1
        });
        let slot = Slot {
            bytes,
            region: region as u32,
            offset: at - begin,
        };
        plan.regions[region] = plan.regions[region].max(slot.offset + bytes);
        slots.push(*slot_of.entry(slot).or_insert_with(|| {
            plan.slots.push(slot);
            plan.slots.len() as u32 - 1
        }));
    }
    slots
}
