//! Beam search: is there a placement within a capacity?
//!
//! Blocks are placed by rising offset, each on the ground or on another's end, as in exact search; but of all beginnings
//! with the same number of blocks, only the most promising are kept. Lost is room that no block left can take: below the
//! lowest offset that the next block of a moment may have. A beginning promises the more, the less is lost where most lives.
//!
//! Invariant: of every block that is not placed, a [`Beginning`] has the highest end of those placed that live at the
//! same time.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::problem::{Problem, first_bare};
use crate::random::Random;

/// What all beginnings of a beam may take, in bytes.
const MOST_BYTES: usize = 64 << 20;
/// What a moment's slack costs: how much of the capacity neither lives there nor is lost.
#[derive(Clone, Copy, Debug)]
enum Cost {
    /// Falls by so much for each hundredth, so that nearly only the tightest moments count.
    Exponential(f64),
    /// Falls slowly, so that all count; what it would be without slack.
    Reciprocal(f64),
}

impl Cost {
    fn of(self, slack: f64) -> f64 {
        match self {
            Self::Exponential(steep) => (-slack * steep).exp(),
            Self::Reciprocal(most) => 1.0 / (slack + 1.0 / most),
        }
    }
}

/// How one search goes about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    cost: Cost,
    /// How many beginnings are kept.
    width: usize,
    /// For each that is kept, of so many it is found out what they really cost.
    guesses: usize,
}

impl Style {
    /// One for each turn, of a beam of so many beginnings. Which serves an instance best cannot be told before.
    pub(crate) fn of(turn: usize, width: usize, random: &mut Random) -> Self {
        let cost = match turn {
            0 => Cost::Exponential(100.0),
            1 => Cost::Reciprocal(50.0),
            2 => Cost::Exponential(30.0),
            _ if random.below(2) == 0 => Cost::Exponential(20.0 + random.below(130) as f64),
            _ => Cost::Reciprocal(20.0 + random.below(130) as f64),
        };
        let guesses = if turn.is_multiple_of(2) { 2 } else { 16 };
        Self {
            cost,
            width,
            guesses,
        }
    }
}

/// Some blocks are placed.
#[derive(Clone)]
struct Beginning {
    /// What is left, and how low each may lie.
    left: Vec<Left>,
    /// Where those that are placed lie.
    offsets: Vec<u64>,
    /// Of each moment, the bytes that live then and are not placed.
    loads: Vec<u64>,
    /// Of each moment, what it costs that this begins so; and their sum.
    costs: Vec<f64>,
    cost: f64,
    /// The same for the same blocks at the same offsets.
    hash: u64,
    last: Place,
}

impl Beginning {
    fn bytes(&self) -> usize {
        size_of_val(&*self.left)
            + size_of_val(&*self.offsets)
            + size_of_val(&*self.loads)
            + size_of_val(&*self.costs)
    }
}

#[derive(Clone, Copy)]
struct Left {
    block: u32,
    height: u64,
}

/// What follows has a higher place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    offset: u64,
    /// One more than the block's number.
    rank: u32,
}

impl Place {
    fn block(self) -> u32 {
        self.rank - 1
    }
}

/// A beginning with one block more.
#[derive(Clone, Copy)]
struct Next {
    /// Guessed at first, from what changes where the block itself lives.
    cost: f64,
    from: usize,
    place: Place,
    hash: u64,
}

/// Searches within a capacity, until `stop`. Nothing found does not say that there is nothing.
pub(crate) fn search(
    problem: &Problem,
    capacity: u64,
    style: Style,
    stop: &dyn Fn() -> bool,
) -> Option<Vec<u64>> {
    let mut beam = Beam::new(problem, capacity, style.cost);
    let first = beam.first()?;
    let width = style.width.min(MOST_BYTES / first.bytes().max(1)).max(1);
    let mut kept = vec![first];
    let mut nexts = Vec::new();
    for _ in 0..problem.sizes.len() {
        nexts.clear();
        for (from, beginning) in kept.iter().enumerate() {
            if stop() {
                return None;
            }
            beam.nexts(from, beginning, &mut nexts);
        }
        cheapest(&mut nexts, style.guesses * width);
        let mut known = Vec::with_capacity(nexts.len());
        for next in &nexts {
            if stop() {
                return None;
            }
            let cost = beam.cost_of(&kept[next.from], next.place);
            known.extend(cost.map(|cost| Next { cost, ..*next }));
        }
        cheapest(&mut known, width);
        kept = known
            .iter()
            .filter_map(|next| beam.with(&kept[next.from], next))
            .collect();
    }
    kept.into_iter().next().map(|it| it.offsets)
}

/// Leaves so many that differ, the cheapest first.
fn cheapest(nexts: &mut Vec<Next>, most: usize) {
    nexts.sort_unstable_by(|one, other| one.cost.total_cmp(&other.cost));
    let mut hashes = HashSet::new();
    nexts.retain(|next| hashes.len() < most && hashes.insert(next.hash));
}

struct Beam<'p> {
    problem: &'p Problem,
    capacity: u64,
    cost: Cost,
    /// Of each two blocks, whether they live at the same time.
    meet: Vec<Vec<bool>>,
    /// What is left after the next block, the lowest first. Room for [`Beam::cost_of`].
    after: Vec<Left>,
    /// Of each moment, how low its next block may lie.
    lowest: Vec<u64>,
    /// Of each moment, itself until a block is known that lives then, and then a later one.
    bare: Vec<usize>,
    /// What moments cost after the next block.
    costs: Vec<f64>,
}

impl<'p> Beam<'p> {
    fn new(problem: &'p Problem, capacity: u64, cost: Cost) -> Self {
        let moments = problem.loads.len();
        let meet = |neighbours: &Vec<u32>| {
            let mut meet = vec![false; problem.sizes.len()];
            neighbours.iter().for_each(|&it| meet[it as usize] = true);
            meet
        };
        Self {
            problem,
            capacity,
            cost,
            meet: problem.neighbours.iter().map(meet).collect(),
            after: Vec::new(),
            lowest: vec![0; moments],
            bare: vec![0; moments + 1],
            costs: Vec::with_capacity(moments),
        }
    }

    /// Nothing is placed; nothing if that is too much already.
    fn first(&mut self) -> Option<Beginning> {
        let problem = self.problem;
        let every = 0..u32::try_from(problem.sizes.len()).ok()?;
        let mut first = Beginning {
            left: every.map(|block| Left { block, height: 0 }).collect(),
            offsets: vec![0; problem.sizes.len()],
            loads: problem.loads.clone(),
            costs: vec![0.0; problem.loads.len()],
            cost: 0.0,
            hash: 0,
            last: Place::default(),
        };
        for (cost, &load) in first.costs.iter_mut().zip(&problem.loads) {
            *cost = self.cost_at(0, load)?;
        }
        first.cost = first.costs.iter().sum();
        Some(first)
    }

    /// What a moment costs where so much is left to be placed, from this offset on.
    fn cost_at(&self, lowest: u64, load: u64) -> Option<f64> {
        if load == 0 {
            return Some(0.0);
        }
        let slack = self.capacity.checked_sub(lowest + load)?;
        Some(self.cost.of(slack as f64 / self.capacity as f64))
    }

    fn size(&self, block: u32) -> u64 {
        self.problem.sizes[block as usize]
    }

    fn end(&self, it: Left) -> u64 {
        it.height + self.size(it.block)
    }

    /// All that may come next: where no block would fit below it, and all that is left may still fit.
    fn nexts(&mut self, from: usize, beginning: &Beginning, into: &mut Vec<Next>) {
        let hole = beginning.left.iter().map(|&it| self.end(it)).min();
        for &next in &beginning.left {
            let place = Place {
                offset: next.height,
                rank: next.block + 1,
            };
            if place <= beginning.last || hole.is_some_and(|hole| next.height >= hole) {
                continue;
            }
            if let Some(cost) = self.guess(beginning, next) {
                let mut hasher = DefaultHasher::new();
                (place.offset, place.rank).hash(&mut hasher);
                into.push(Next {
                    cost,
                    from,
                    place,
                    hash: beginning.hash ^ hasher.finish(),
                });
            }
        }
    }

    /// What it costs to place a block if nothing changes but where it lives.
    fn guess(&self, beginning: &Beginning, next: Left) -> Option<f64> {
        let (size, top) = (self.size(next.block), self.end(next));
        let mut cost = beginning.cost;
        for &(from, to) in &self.problem.stretches[next.block as usize] {
            for moment in from..to {
                cost += self.cost_at(top, beginning.loads[moment] - size)?;
                cost -= beginning.costs[moment];
            }
        }
        (top <= self.capacity).then_some(cost)
    }

    /// What it costs to place a block; nothing where what is left does not fit any more.
    fn cost_of(&mut self, beginning: &Beginning, place: Place) -> Option<f64> {
        self.look_after(beginning, place)?;
        self.cover()?;
        let own = &self.problem.stretches[place.block() as usize];
        let size = self.size(place.block());
        self.costs.clear();
        for (moment, &load) in beginning.loads.iter().enumerate() {
            let placed = own.iter().any(|&(from, to)| (from..to).contains(&moment));
            let load = if placed { load - size } else { load };
            let cost = self.cost_at(self.lowest[moment], load)?;
            self.costs.push(cost);
        }
        Some(self.costs.iter().sum())
    }

    /// Fills `lowest`; nothing where a block of `after` does not fit.
    fn cover(&mut self) -> Option<()> {
        for (moment, bare) in self.bare.iter_mut().enumerate() {
            *bare = moment;
        }
        for &it in &self.after {
            if self.end(it) > self.capacity {
                return None;
            }
            // The first to cover a moment is the lowest of those that live then.
            for &(from, to) in &self.problem.stretches[it.block as usize] {
                let mut moment = first_bare(&mut self.bare, from);
                while moment < to {
                    self.lowest[moment] = it.height;
                    self.bare[moment] = moment + 1;
                    moment = first_bare(&mut self.bare, moment + 1);
                }
            }
        }
        Some(())
    }

    /// Fills `after`. A block that would have a place before the last one's can only come once a neighbour has lifted it;
    /// where none is left that could, there is no placement.
    fn look_after(&mut self, beginning: &Beginning, place: Place) -> Option<()> {
        let block = place.block();
        let top = place.offset + self.size(block);
        let meet = &self.meet[block as usize];
        let others = beginning.left.iter().filter(|it| it.block != block);
        self.after.clear();
        self.after.extend(others.map(|it| Left {
            height: if meet[it.block as usize] {
                it.height.max(top)
            } else {
                it.height
            },
            ..*it
        }));
        let too_low = |it: &Left| (it.height, it.block + 1) <= (place.offset, place.rank);
        for at in 0..self.after.len() {
            if too_low(&self.after[at]) {
                let meet = &self.meet[self.after[at].block as usize];
                let lifting = self.after.iter().filter(|it| meet[it.block as usize]);
                let ends = lifting.map(|it| it.height.max(place.offset) + self.size(it.block));
                self.after[at].height = ends.min()?;
            }
        }
        self.after.sort_unstable_by_key(|it| it.height);
        Some(())
    }

    /// The beginning with its next block.
    fn with(&mut self, beginning: &Beginning, next: &Next) -> Option<Beginning> {
        let cost = self.cost_of(beginning, next.place)?;
        let block = next.place.block();
        let size = self.size(block);
        let meet = &self.meet[block as usize];
        let mut after = beginning.clone();
        after.left.retain(|it| it.block != block);
        for it in &mut after.left {
            if meet[it.block as usize] {
                it.height = it.height.max(next.place.offset + size);
            }
        }
        after.offsets[block as usize] = next.place.offset;
        for &(from, to) in &self.problem.stretches[block as usize] {
            for load in &mut after.loads[from..to] {
                *load -= size;
            }
        }
        after.costs.clone_from(&self.costs);
        after.cost = cost;
        after.hash = next.hash;
        after.last = next.place;
        Some(after)
    }
}

#[cfg(test)]
mod tests;
