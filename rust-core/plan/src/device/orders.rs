//! Other orders of a record's iterations, where their order looks like chance: batches of several shapes, drawn at random.
//!
//! An iteration lies between two moments at which nearly nothing is live but what the record never frees. That, such as an
//! optimizer's state, is asked for in the same turn as in the record, as long before the iteration's end, whichever iteration it
//! is. Iterations with equally many requests take each other's turns: steps of one loop, whatever lengths their batches have.
//! Others, such as evaluation or phases of the program, stay where the record has them; and phases may last longer.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use pinbuddy_device::Act;

use crate::file::GRANULE;
use crate::random::Random;
use crate::script::{exact, near};

/// Between two iterations as much may be live of what is freed later: one part in so many of the most.
const SLACK: u64 = 64;

/// What has less than this part of the most at once belongs to the iteration before it.
const SHORT: u64 = 16;

/// So few iterations that could change places say nothing of their order.
const FEWEST: usize = 5;

/// So many orders are tried: the last iteration first, and others by chance.
const TRIED: u64 = 4;

/// The turns of iterations with equally many requests, where there are several.
fn loops(shapes: &[Vec<u64>]) -> Vec<Vec<usize>> {
    let mut turns: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (turn, it) in shapes.iter().enumerate() {
        turns.entry(it.len()).or_default().push(turn);
    }
    turns.into_values().filter(|it| it.len() > 1).collect()
}

/// Whether most requests are in iterations of the same shape as the one so many before.
fn take_turns(shapes: &[Vec<u64>]) -> bool {
    let mut known = HashMap::new();
    let ids: Vec<usize> = shapes
        .iter()
        .map(|it| {
            let next = known.len();
            *known.entry(it).or_insert(next)
        })
        .collect();
    let requests = |turns: Range<usize>, distance| -> usize {
        let same = turns.filter(|turn| ids[*turn] == ids[turn - distance]);
        same.map(|turn| shapes[turn].len()).sum()
    };
    let mut distances = near(&ids, 4).into_iter();
    distances.any(|it| requests(it..ids.len(), it) * 4 >= requests(it..ids.len(), 0) * 3)
}

/// Requests, by their acts. Blocks of the orders have the same numbers.
#[derive(Default)]
struct Lives {
    /// Of each act that asks or frees: the request.
    births: Vec<Option<usize>>,
    bytes: HashMap<usize, u64>,
    /// Requests that are never freed: what follows the last request is the program's end.
    stay: HashSet<usize>,
}

/// The iterations of a record.
pub(super) struct Iterations<'a> {
    /// Up to the last request: what follows is the program's end.
    acts: &'a [Act],
    lives: Lives,
    iterations: Vec<Range<usize>>,
    /// How long the requests of each are ([`Lives::shape`]).
    shapes: Vec<Vec<u64>>,
}

impl<'a> Iterations<'a> {
    pub(super) fn of(acts: &'a [Act]) -> Self {
        let is_request = |it: &Act| matches!(it, Act::Alloc { .. });
        let end = acts.iter().rposition(is_request).map_or(0, |it| it + 1);
        let acts = &acts[..end];
        let lives = Lives::of(acts);
        let iterations = lives.iterations();
        let shapes = iterations.iter().map(|it| lives.shape(it)).collect();
        Self {
            acts,
            lives,
            iterations,
            shapes,
        }
    }

    /// The acts in other orders; none where iterations are not found, are few, or come in an order that is the program's.
    pub(super) fn other_orders(&self) -> Vec<Vec<Act>> {
        let Self {
            acts,
            lives,
            iterations,
            shapes,
        } = self;
        let loops = loops(shapes);
        let movable: usize = loops.iter().map(Vec::len).sum();
        if movable < FEWEST || lives.has_own_order(iterations, shapes) {
            return Vec::new();
        }
        let order = |seed| {
            let mut order: Vec<usize> = (0..iterations.len()).collect();
            let mut random = Random::new(seed);
            for turns in &loops {
                let mut taken = turns.clone();
                taken.reverse();
                for at in (1..taken.len()).rev().filter(|_| seed > 0) {
                    taken.swap(at, random.below(at + 1));
                }
                turns
                    .iter()
                    .zip(taken)
                    .for_each(|(turn, it)| order[*turn] = it);
            }
            lives.in_order(acts, iterations, &order)
        };
        (0..TRIED).map(order).collect()
    }

    /// The acts with each iteration twice, where none comes again behind one of another shape: phases, which last longer in another
    /// run. None where there are no phases, or one iteration has all but one in twenty requests: then some were not found.
    pub(super) fn longer_phases(&self) -> Option<Vec<Act>> {
        let Self {
            acts,
            lives,
            iterations,
            shapes,
        } = self;
        let phases = shapes.chunk_by(|one, next| one == next).count();
        let most = shapes.iter().map(Vec::len).max().unwrap_or(0);
        let has_all = most * 20 > shapes.iter().map(Vec::len).sum::<usize>() * 19;
        if has_all || phases < 2 || phases > shapes.iter().collect::<HashSet<_>>().len() {
            return None;
        }
        let mut run = Run::default();
        (0..iterations[0].start).for_each(|at| run.act(lives, acts, at));
        for iteration in iterations {
            iteration.clone().for_each(|at| run.act(lives, acts, at));
            // What the next one would free.
            run.end();
            let again = iteration.clone().filter(|it| !lives.stay.contains(it));
            again.for_each(|at| run.act(lives, acts, at));
        }
        Some(run.acts)
    }
}

impl Lives {
    fn of(acts: &[Act]) -> Self {
        let mut lives = Self::default();
        let mut live: HashMap<u32, usize> = HashMap::new();
        for (at, act) in acts.iter().enumerate() {
            lives.births.push(match *act {
                Act::Alloc { block, bytes, .. } => {
                    lives.bytes.insert(at, bytes);
                    live.insert(block, at);
                    Some(at)
                }
                Act::Free { block } => live.remove(&block),
                _ => None,
            });
        }
        lives.stay = live.into_values().collect();
        lives
    }

    fn requests(&self, acts: Range<usize>) -> impl Iterator<Item = usize> {
        acts.filter(|at| self.births[*at] == Some(*at))
    }

    /// How long an iteration's requests are, without those that are never freed.
    fn shape(&self, iteration: &Range<usize>) -> Vec<u64> {
        let own = self.requests(iteration.clone());
        let own = own.filter(|it| !self.stay.contains(it));
        own.map(|it| self.bytes[&it]).collect()
    }

    /// Whether the program has its iterations in just this order: most requests come by turns, or each shape in one phase.
    fn has_own_order(&self, iterations: &[Range<usize>], shapes: &[Vec<u64>]) -> bool {
        let all: Vec<u32> = self
            .requests(iterations[0].start..self.births.len())
            .map(|it| self.bytes[&it].div_ceil(GRANULE) as u32)
            .collect();
        let repeat = exact(&all).is_some_and(|it| it.0 * 4 >= all.len() * 3);
        let kinds = shapes.iter().collect::<HashSet<_>>().len();
        let phases = shapes.chunk_by(|one, next| one == next).count();
        repeat || take_turns(shapes) || phases == kinds && kinds * 2 <= shapes.len()
    }

    /// Bytes that will be freed, before each act and behind the last one.
    fn passing(&self) -> Vec<u64> {
        let mut now = 0;
        let mut passing = vec![0];
        for (at, birth) in self.births.iter().enumerate() {
            let own = birth.filter(|it| !self.stay.contains(it));
            let bytes = own.map_or(0, |it| self.bytes[&it]);
            now = if own == Some(at) {
                now + bytes
            } else {
                now - bytes
            };
            passing.push(now);
        }
        passing
    }

    fn iterations(&self) -> Vec<Range<usize>> {
        let passing = self.passing();
        let most = passing.iter().max().copied().unwrap_or(0);
        let is_rest = |at: &usize| {
            passing[*at] <= most / SLACK && self.births.get(*at).is_none_or(|it| *it == Some(*at))
        };
        let rests: Vec<usize> = (0..passing.len()).filter(is_rest).collect();
        let mut iterations: Vec<Range<usize>> = Vec::new();
        for part in rests.windows(2) {
            let is_short = passing[part[0]..part[1]]
                .iter()
                .all(|it| *it <= most / SHORT);
            match iterations.last_mut() {
                Some(last) if is_short => last.end = part[1],
                None if is_short => {}
                _ => iterations.push(part[0]..part[1]),
            }
        }
        iterations
    }

    fn in_order(&self, acts: &[Act], iterations: &[Range<usize>], order: &[usize]) -> Vec<Act> {
        let mut run = Run::default();
        let begin = iterations.first().map_or(0, |it| it.start);
        (0..begin).for_each(|at| run.act(self, acts, at));
        for (turn, &number) in iterations.iter().zip(order) {
            let stays = |at: &usize| self.stay.contains(at);
            // From the end back: what the record makes for good in this turn, and how many acts before its end.
            let mut left = 0;
            let mut made = Vec::new();
            for at in turn.clone().rev() {
                match stays(&at) {
                    true => made.push((left, at)),
                    false => left += 1,
                }
            }
            let own: Vec<usize> = iterations[number].clone().filter(|it| !stays(it)).collect();
            for (done, &at) in own.iter().enumerate() {
                while let Some((_, at)) = made.pop_if(|(left, _)| *left >= own.len() - done) {
                    run.act(self, acts, at);
                }
                run.act(self, acts, at);
            }
            made.iter().rev().for_each(|it| run.act(self, acts, it.1));
            // What another iteration would free.
            run.end();
        }
        run.acts
    }
}

/// Acts in another order.
#[derive(Default)]
struct Run {
    acts: Vec<Act>,
    /// Without what is never freed.
    live: HashSet<usize>,
}

impl Run {
    fn act(&mut self, lives: &Lives, acts: &[Act], at: usize) {
        match (acts[at], lives.births[at]) {
            (Act::Alloc { bytes, stream, .. }, _) => {
                if !lives.stay.contains(&at) {
                    self.live.insert(at);
                }
                let block = at as u32;
                self.acts.push(Act::Alloc {
                    block,
                    bytes,
                    stream,
                });
            }
            // What is not live was freed when its own iteration ended.
            (Act::Free { .. }, Some(birth)) if self.live.remove(&birth) => {
                let block = birth as u32;
                self.acts.push(Act::Free { block });
            }
            (Act::Iter | Act::Clear, _) => self.acts.push(acts[at]),
            _ => {}
        }
    }

    fn end(&mut self) {
        let mut over: Vec<usize> = self.live.drain().collect();
        over.sort_unstable();
        let frees = over.into_iter().map(|it| Act::Free { block: it as u32 });
        self.acts.extend(frees);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks one after the other, each an iteration.
    fn orders(sizes: impl IntoIterator<Item = u64>) -> usize {
        let acts = (0..).zip(sizes).flat_map(|(block, mib)| {
            let bytes = mib << 20;
            let stream = 0;
            let ask = Act::Alloc {
                block,
                bytes,
                stream,
            };
            [ask, Act::Free { block }]
        });
        Iterations::of(&acts.collect::<Vec<_>>())
            .other_orders()
            .len()
    }

    #[test]
    fn turns_and_phases_are_the_programs_own_order_whatever_comes_at_its_end() {
        let turns = || [12, 20, 16].repeat(30);
        assert_eq!(orders(turns()), 0);
        assert_eq!(orders(turns().into_iter().chain([12, 7, 9])), 0);
        assert_eq!(orders([[12; 9], [20; 9]].concat()), 0);
    }

    #[test]
    fn a_phase_lasts_longer_and_what_stays_is_made_once() {
        let ask = |block, mib: u64| Act::Alloc {
            block,
            bytes: mib << 20,
            stream: 0,
        };
        let free = |block| Act::Free { block };
        let acts = |sizes: &[u64]| -> Vec<Act> {
            let each = (1_u32..).zip(sizes);
            let each = each.flat_map(|(block, mib)| [ask(block, *mib), free(block)]);
            let all = [ask(0, 3)].into_iter().chain(each);
            all.chain([ask(9, 1), free(0)]).collect()
        };
        let sizes = |acts: &[Act]| -> Vec<u64> {
            let sizes = acts.iter().filter_map(|it| match it {
                Act::Alloc { bytes, .. } => Some(bytes >> 20),
                _ => None,
            });
            sizes.collect()
        };
        let longer = Iterations::of(&acts(&[12, 12, 20]))
            .longer_phases()
            .expect("there are two phases");
        assert_eq!(sizes(&longer), [3, 12, 12, 12, 12, 20, 1, 20]);
        let frees = longer.iter().filter(|it| matches!(it, Act::Free { .. }));
        assert!(frees.count() >= 5, "{longer:?}");
        for turns in [[12, 20, 12, 20], [12; 4]] {
            assert_eq!(Iterations::of(&acts(&turns)).longer_phases(), None);
        }
    }

    #[test]
    fn sizes_that_come_by_chance_may_come_in_another_order() {
        let mut random = Random::new(7);
        let drawn: Vec<u64> = (0..30).map(|_| 12 + 4 * random.below(4) as u64).collect();
        assert_eq!(orders(drawn), TRIED as usize);
        assert_eq!(orders((0..30).map(|it| 40 + it * it % 23)), TRIED as usize);
    }
}
