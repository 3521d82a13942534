//! The line of bytes that is cut into regions: walls stand where regions end, and no block crosses one.
//!
//! All blocks of a group are placed together: those of an iteration, which come again, and those before the first one.
//! A region is unpinned when the cache is emptied while nothing lies in it. So where a program does that, what lives then
//! is placed apart from all else, with a wall between, unless that takes more memory; and in parts that go one by one.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::spans::Spans;
use super::{Options, Seen, Watch};
use crate::file::{GRANULE, MOST_REGION, Plan, Slot};
use crate::solve::{around, first_fit};
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
}

/// The first place from `offset` on at which a block crosses no end of the longest region. What no region holds is nobody's.
fn beside_walls(offset: u64, bytes: u64) -> u64 {
    let last = (offset + bytes - 1) / MOST_REGION * MOST_REGION;
    if last <= offset || bytes > MOST_REGION {
        offset
    } else {
        last
    }
}

/// Whether bytes lie on both sides of a wall.
fn crosses(offset: u64, bytes: u64) -> bool {
    beside_walls(offset, bytes) != offset
}

/// So much lies between what is apart and the rest, so that nothing crosses from one to the other. It is in no region.
const WALL: u64 = GRANULE;

/// What a block is to the iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It lives through all of them: it meets each other block, so nothing is to be searched.
    Kept,
    /// It is a part of them.
    Again,
    /// It is there for a while before them: it lies around the others, which decide how long the line is.
    Passing,
}

/// Blocks that are placed together.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) blocks: Vec<Block>,
    pub(super) kinds: Vec<Kind>,
    /// What begins within it comes again after it.
    pub(super) period: Option<Range<u64>>,
    /// Of each block, whether it lives where the cache may be emptied; nothing if none is to lie apart.
    pub(super) apart: Option<Vec<bool>>,
}

impl Group {
    fn instance(&self, some: &[usize]) -> Option<Instance> {
        let blocks = some.iter().map(|&at| self.blocks[at]).collect();
        instance(blocks, self.period.clone())
    }
}

/// None if they have more bytes than any machine has.
fn instance(blocks: Vec<Block>, period: Option<Range<u64>>) -> Option<Instance> {
    match period {
        Some(period) => Instance::cyclic(blocks, period),
        None => Instance::new(blocks),
    }
    .ok()
}

/// Blocks of a group on the line.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// In the order of the group's blocks.
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
        .map_or(u64::MAX, |it| first_fit(&it, good, effort).peak)
}

/// A placement that is no higher is good enough.
fn enough(bound: u64) -> u64 {
    bound / 1000 * (1000 + GOOD_ENOUGH)
}

/// Places a group from `base` on. What is to lie apart does so unless that takes too much more.
pub(super) fn place(group: &Group, base: u64, options: &Options, watch: Watch<'_>) -> Placed {
    let stays = |at: usize| group.kinds[at] != Kind::Passing;
    let mut placed = place_some(group, stays, base, options, watch);
    if let Some(apart) = group.apart.as_ref().filter(|_| !options.together) {
        placed.is_apart = true;
        let mut first = place_some(group, |at| stays(at) && apart[at], base, options, watch);
        let rest = |at: usize| stays(at) && !apart[at];
        let rest = place_some(group, rest, first.end + WALL, options, watch);
        let length = placed.end - base;
        let most = if options.device {
            MOST_UNASKED
        } else {
            MOST_FOR_A_WALL
        };
        if rest.end - base <= length + length / most {
            for (at, offset) in rest.offsets.into_iter().enumerate() {
                if !apart[at] {
                    first.offsets[at] = offset;
                }
            }
            placed.wall = Some(first.end + WALL);
            placed.end = rest.end;
            placed.offsets = first.offsets;
        }
    }
    place_around(group, &mut placed, base, options, watch);
    placed
}

/// Places what is there for a while before the iterations around all else. What crosses a wall then lies behind it.
fn place_around(
    group: &Group,
    placed: &mut Placed,
    base: u64,
    options: &Options,
    watch: Watch<'_>,
) {
    if !group.kinds.contains(&Kind::Passing) {
        return;
    }
    let passes = |at: usize| group.kinds[at] == Kind::Passing;
    let all: Vec<usize> = (0..group.blocks.len()).collect();
    let mut blocks = group.blocks.clone();
    let known = |at: &usize| (!passes(*at)).then(|| placed.offsets[*at] - base);
    let mut known: Vec<Option<u64>> = all.iter().map(known).collect();
    if let Some(wall) = placed.wall {
        // Nothing crosses what is always there.
        blocks.push(Block {
            lower: 0,
            upper: blocks.iter().map(|it| it.upper).max().unwrap_or(1),
            size: WALL,
        });
        known.push(Some(wall - WALL - base));
    }
    let Some(instance) = instance(blocks, group.period.clone()) else {
        return;
    };
    placed.bound = placed.bound.max(instance.lower_bound());
    let found = around(&instance, &known, watch.stop);
    let mut left = vec![false; all.len()];
    for (at, offset) in all.iter().copied().zip(found).filter(|it| passes(it.0)) {
        let (offset, bytes) = (base + offset, group.blocks[at].size);
        if crosses(offset, bytes) {
            left[at] = true;
        } else {
            placed.offsets[at] = offset;
            placed.end = placed.end.max(offset + bytes);
        }
    }
    if left.contains(&true) {
        let behind = place_some(group, |at| left[at], placed.end, options, watch);
        for at in all.into_iter().filter(|&at| left[at]) {
            placed.offsets[at] = behind.offsets[at];
        }
        placed.end = behind.end;
    }
}

/// Places the blocks that are `chosen` from `base` on. What crosses a wall is placed anew after all others.
fn place_some(
    group: &Group,
    chosen: impl Fn(usize) -> bool,
    base: u64,
    options: &Options,
    watch: Watch<'_>,
) -> Placed {
    let mut placed = Placed {
        offsets: vec![0; group.blocks.len()],
        end: base,
        ..Placed::default()
    };
    let all = (0..group.blocks.len()).filter(|&at| chosen(at));
    let (kept, mut left): (Vec<usize>, Vec<usize>) =
        all.partition(|&at| group.kinds[at] == Kind::Kept);
    for at in kept {
        let bytes = group.blocks[at].size;
        placed.offsets[at] = beside_walls(placed.end, bytes);
        placed.end = placed.offsets[at] + bytes;
    }
    let kept = placed.end - base;
    placed.bound = kept;
    while !left.is_empty() {
        let Some(instance) = group.instance(&left) else {
            // More bytes than any machine has: nothing is placed.
            return Placed {
                end: base,
                ..Placed::default()
            };
        };
        let good = enough(instance.lower_bound());
        // What crossed a wall comes on top.
        let below = placed.end - base;
        let bound = placed.bound.max(kept + instance.lower_bound());
        let best = AtomicU64::new(u64::MAX);
        let effort = Effort {
            joins: false,
            threads: options.threads,
            stop: &|| best.load(Relaxed) <= good || (watch.stop)(),
            seen: &|peak| {
                best.store(peak, Relaxed);
                let peak = below + peak;
                (watch.seen)(Seen { peak, bound });
            },
        };
        let solution = match options.quick {
            true => first_fit(&instance, good, effort),
            false => solve(&instance, effort),
        };
        // What no region holds is cut anyway.
        let base = if solution.peak > MOST_REGION {
            placed.end
        } else {
            beside_walls(placed.end, solution.peak)
        };
        if placed.bound == kept {
            placed.bound += solution.bound;
        }
        let mut crossing = Vec::new();
        for (&at, offset) in left.iter().zip(&solution.offsets) {
            let (offset, bytes) = (base + offset, group.blocks[at].size);
            if crosses(offset, bytes) {
                crossing.push(at);
            } else {
                placed.offsets[at] = offset;
                placed.end = placed.end.max(offset + bytes);
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
