//! Where blocks lie on the line of bytes: those of an iteration, which come again, and those before the first one, in one instance.
//!
//! What lives where the cache is emptied is placed apart from all else, with a wall between, unless that takes more memory: its
//! regions stay, and the others can be given back. Invariant: no block crosses a wall.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::line::{beside_walls, crosses};
use super::spans::Spans;
use super::{Options, Seen, Watch};
use crate::file::{GRANULE, MOST_REGION};
use crate::solve::{around, first_fit};
use crate::{Block, Effort, Instance, Solution, solve};

/// A solution is good enough at so many thousandths above the bound. Each counts of device memory; of pinned memory, a plan may have
/// twenty, and a search for the last ones took all the time that it had: of nine sizes of one program's requests, for two.
const GOOD_ENOUGH: u64 = 1;
const PINNED_GOOD_ENOUGH: u64 = 5;

/// What lives where the cache is emptied has regions of its own if that takes at most one part in so many more.
const MOST_FOR_A_WALL: u64 = 100;

/// The same where it is not known that the cache is emptied.
const MOST_UNASKED: u64 = 1000;

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
    /// The blocks with later ends of those that pass: the first ones are placed that take no more than their own ends do.
    pub(super) late: Vec<Vec<Block>>,
    /// Whether it is known that the cache is emptied.
    pub(super) emptied: bool,
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
#[derive(Clone, Debug, Default)]
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

impl Placed {
    /// Puts a block of `bytes` bytes at `offset`, unless it crosses a wall there: then says no.
    fn put(&mut self, at: usize, offset: u64, bytes: u64) -> bool {
        if crosses(offset, bytes) {
            return false;
        }
        self.offsets[at] = offset;
        self.end = self.end.max(offset + bytes);
        true
    }

    /// Puts a block behind all others.
    fn put_last(&mut self, at: usize, bytes: u64) {
        self.offsets[at] = beside_walls(self.end, bytes);
        self.end = self.offsets[at] + bytes;
    }
}

/// So often later ends are given up before the own ones are taken.
const MOST_GIVEN_UP: usize = 8;

/// How many turns are tried.
const MOST_TURNS: u64 = 8;

/// With how many blocks turns, or later ends, are tried.
const MOST_TRIED: u64 = 1 << 15;

/// Where first fit does not come near the bound of a group, looks for turns and room with which it does.
///
/// Three that live at once on a circle of seven need a fourth place, but not on one of 21: three turns. And
/// where one is a little shorter than all others, others that begin at its end go astray: it gets as much room,
/// if that does not raise the bound.
pub(super) fn ease(spans: &mut Spans<'_>, options: &Options, watch: Watch<'_>) {
    let (fewest, plain) = (spans.turns, spans.room.clone());
    let most = if spans.cross() { MOST_TURNS } else { fewest };
    let good = enough(spans.bound(), options);
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
    spans.instance().map_or(u64::MAX, |it| first_fit(&it, good, effort).peak)
}

/// A placement that is no higher is good enough.
fn enough(bound: u64, options: &Options) -> u64 {
    let thousandths = if options.device { GOOD_ENOUGH } else { PINNED_GOOD_ENOUGH };
    bound / 1000 * (1000 + thousandths)
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
        let most = match options.device && !group.emptied {
            true => MOST_UNASKED,
            false => MOST_FOR_A_WALL,
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
    if !group.kinds.contains(&Kind::Passing) {
        return placed;
    }
    let own = place_around(group, &group.blocks, placed.clone(), base, options, watch);
    place_late(group, &own, &placed, base, options, watch).unwrap_or(own)
}

/// Places what passes with its later ends, as far as that takes no more than with its `own`: a later end is given up beside what finds
/// no place below.
fn place_late(
    group: &Group,
    own: &Placed,
    placed: &Placed,
    base: u64,
    options: &Options,
    watch: Watch<'_>,
) -> Option<Placed> {
    let mut blocks = group.late.first()?.clone();
    if blocks.len() as u64 > MOST_TRIED {
        return None;
    }
    for _ in 0..MOST_GIVEN_UP {
        let late = place_around(group, &blocks, placed.clone(), base, options, watch);
        if late.end <= own.end {
            return Some(late);
        }
        let ends = late.offsets.iter().zip(&blocks);
        let above = ends.filter(|(offset, it)| *offset + it.size > own.end);
        let above: Vec<Block> = above.map(|it| *it.1).collect();
        let mut gave_up = false;
        for (at, block) in blocks.iter_mut().enumerate() {
            let own = group.blocks[at];
            let meets = |it: &Block| it.lower < block.upper && block.lower < it.upper;
            if block.upper > own.upper && above.iter().any(meets) {
                let next = group.late.iter().map(|it| it[at]).find(|it| it.upper < block.upper);
                *block = next.unwrap_or(own);
                gave_up = true;
            }
        }
        if !gave_up {
            break;
        }
    }
    None
}

/// Places what is there for a while before the iterations around all else. What crosses a wall then lies behind it.
fn place_around(
    group: &Group,
    blocks: &[Block],
    mut placed: Placed,
    base: u64,
    options: &Options,
    watch: Watch<'_>,
) -> Placed {
    let passes = |at: usize| group.kinds[at] == Kind::Passing;
    let all: Vec<usize> = (0..group.blocks.len()).collect();
    let mut blocks = blocks.to_vec();
    let known = |at: &usize| (!passes(*at)).then(|| placed.offsets[*at] - base);
    let mut known: Vec<Option<u64>> = all.iter().map(known).collect();
    if let Some(wall) = placed.wall {
        // Nothing crosses what is always there.
        blocks.push(Block { lower: 0, upper: blocks.iter().map(|it| it.upper).max().unwrap_or(1), size: WALL });
        known.push(Some(wall - WALL - base));
    }
    let Some(instance) = instance(blocks, group.period.clone()) else {
        return placed;
    };
    placed.bound = placed.bound.max(instance.lower_bound());
    let found = around(&instance, &known, watch.stop);
    let mut left = vec![false; all.len()];
    for (at, offset) in all.iter().copied().zip(found).filter(|it| passes(it.0)) {
        left[at] = !placed.put(at, base + offset, group.blocks[at].size);
    }
    if left.contains(&true) {
        let behind = place_some(group, |at| left[at], placed.end, options, watch);
        for at in all.into_iter().filter(|&at| left[at]) {
            placed.offsets[at] = behind.offsets[at];
        }
        placed.end = behind.end;
    }
    placed
}

/// Places the blocks that are `chosen` from `base` on. What crosses a wall is placed anew after all others.
fn place_some(group: &Group, chosen: impl Fn(usize) -> bool, base: u64, options: &Options, watch: Watch<'_>) -> Placed {
    let mut placed = Placed { offsets: vec![0; group.blocks.len()], end: base, ..Placed::default() };
    let all = (0..group.blocks.len()).filter(|&at| chosen(at));
    let (kept, left): (Vec<usize>, Vec<usize>) = all.partition(|&at| group.kinds[at] == Kind::Kept);
    for at in kept {
        placed.put_last(at, group.blocks[at].size);
    }
    placed.bound = placed.end - base;
    let is_short = |at: &usize| group.blocks[*at].size < options.apart_below;
    let (short, long) = left.into_iter().partition(is_short);
    for layer in [short, long] {
        if place_layer(group, layer, &mut placed, base, options, watch).is_none() {
            // More bytes than any machine has: nothing is placed.
            return Placed { end: base, ..Placed::default() };
        }
    }
    placed
}

/// Places blocks above all that have places from `base` on; none if they are too many bytes.
fn place_layer(
    group: &Group,
    mut left: Vec<usize>,
    placed: &mut Placed,
    base: u64,
    options: &Options,
    watch: Watch<'_>,
) -> Option<()> {
    let known = placed.bound;
    while !left.is_empty() {
        let instance = group.instance(&left)?;
        // What crossed a wall comes on top.
        let below = placed.end - base;
        let bound = placed.bound.max(known + instance.lower_bound());
        let seen = &|own: Seen| {
            let peak = below + own.peak;
            (watch.seen)(Seen { peak, bound });
        };
        let solution = solution(&instance, options, Watch { seen, ..watch });
        // What no region holds is cut anyway.
        let base = if solution.peak > MOST_REGION { placed.end } else { beside_walls(placed.end, solution.peak) };
        if placed.bound == known {
            placed.bound += solution.bound;
        }
        let mut crossing = Vec::new();
        for (&at, offset) in left.iter().zip(&solution.offsets) {
            if !placed.put(at, base + offset, group.blocks[at].size) {
                crossing.push(at);
            }
        }
        if crossing.len() == left.len() {
            // All did: what is placed anew would lie as before.
            let at = crossing.remove(0);
            placed.put_last(at, group.blocks[at].size);
        }
        left = crossing;
    }
    Some(())
}

/// Places for the blocks of an instance. Hears of each better peak, of the instance alone.
fn solution(instance: &Instance, options: &Options, watch: Watch<'_>) -> Solution {
    let bound = instance.lower_bound();
    let good = enough(bound, options);
    let best = AtomicU64::new(u64::MAX);
    let effort = Effort {
        joins: false,
        threads: options.threads,
        stop: &|| best.load(Relaxed) <= good || (watch.stop)(),
        seen: &|peak| {
            best.store(peak, Relaxed);
            (watch.seen)(Seen { peak, bound });
        },
    };
    match options.quick {
        true => first_fit(instance, good, effort),
        false => solve(instance, effort),
    }
}
