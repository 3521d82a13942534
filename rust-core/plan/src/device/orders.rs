//! Other orders of a record's iterations, where their order looks like chance: batches of several shapes, drawn at random.
//!
//! An iteration lies between two moments at which nearly nothing is live but what the record never frees; or, where few are found
//! so, between two at which far less is live than before and behind. What lives on from one to the next, such as an optimizer's
//! state, is asked for and freed in the same turn as in the record, as long before the iteration's end, whichever iteration it is.
//! Iterations with equally many requests are steps of one loop, whatever lengths their batches have, and may take each other's turns:
//! in all loops if the order of the whole record looks like chance, and else in those whose own order does. All others stay where the
//! record has them. Phases may last longer.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::ops::Range;

use pinbuddy_device::Act;

use crate::file::GRANULE;
use crate::random::Random;
use crate::script::{near, repeats};

use super::LONG;
use super::frees::other_frees;
use super::lives::{Lives, Run};

/// So few iterations that could change places say nothing of their order.
const FEWEST: usize = 5;

/// So many orders are tried: others by chance, and the last iteration first.
const TRIED: u64 = 8;

/// The shortest of so many distances at which the most sizes repeat is an iteration, if its streams take turns.
const AGAIN: usize = 16;

/// So many of the orders of a record of so many acts are tried: all of them of one that is not [`LONG`], and fewer of longer ones, in
/// which more iterations change places with each, and a replay of which takes longer.
pub(super) fn tried(most: u64, acts: usize) -> u64 {
    (most * u64::from(LONG) / acts.max(1) as u64).clamp(1, most)
}

/// How long an iteration's requests are ([`Lives::shape`]): the number of that among the record's, since shapes are compared by the
/// hundred million, and how many they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Shape {
    number: usize,
    requests: usize,
}

impl Shape {
    fn all(lives: &Lives, iterations: &[Range<usize>]) -> Vec<Self> {
        let mut numbers: HashMap<Vec<u64>, usize> = HashMap::new();
        let of = |it| {
            let (next, lengths) = (numbers.len(), lives.shape(it));
            let requests = lengths.len();
            let number = *numbers.entry(lengths).or_insert(next);
            Self { number, requests }
        };
        iterations.iter().map(of).collect()
    }
}

/// The turns of iterations that may take each other's: equally many requests are steps of one loop. If most iterations come in an
/// order that is the program's, only those of loops whose own order is not.
fn loops(shapes: &[Shape]) -> Vec<Vec<usize>> {
    let mut turns: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (turn, it) in shapes.iter().enumerate() {
        turns.entry(it.requests).or_default().push(turn);
    }
    let is_ordered = |turns: &[usize]| {
        let own: Vec<Shape> = turns.iter().map(|it| shapes[*it]).collect();
        own.len() < FEWEST || has_own_order(&own)
    };
    let all: Vec<usize> = (0..shapes.len()).collect();
    let loops = turns.into_values();
    match is_ordered(&all) {
        true => loops.filter(|it| !is_ordered(it)).collect(),
        false => loops.filter(|it| it.len() > 1).collect(),
    }
}

/// Whether most requests come by turns, or each shape in one phase.
fn has_own_order(shapes: &[Shape]) -> bool {
    let requests = |turns: Range<usize>, distance| -> usize {
        let same = turns.filter(|turn| shapes[*turn] == shapes[turn - distance]);
        same.map(|turn| shapes[turn].requests).sum()
    };
    let mut distances = near(shapes, 4).into_iter();
    let all = shapes.len();
    distances.any(|it| requests(it..all, it) * 4 >= requests(it..all, 0) * 3)
        || phases(shapes).is_some_and(|it| it * 2 <= all)
}

/// How many phases there are. None where a shape comes again behind another.
fn phases<S: Eq + Hash>(shapes: &[S]) -> Option<usize> {
    let phases = shapes.chunk_by(|one, next| one == next).count();
    let kinds = shapes.iter().collect::<HashSet<_>>().len();
    (phases == kinds).then_some(phases)
}

/// The iterations of a record.
pub(super) struct Iterations<'a> {
    /// Up to the last request: what follows is the program's end.
    acts: &'a [Act],
    lives: Lives,
    iterations: Vec<Range<usize>>,
    shapes: Vec<Shape>,
    /// Whether far less is live between them, and not nearly nothing.
    in_valleys: bool,
    /// The acts that free what lives across these.
    carried: Vec<usize>,
}

impl<'a> Iterations<'a> {
    pub(super) fn of(acts: &'a [Act]) -> Self {
        let is_request = |it: &Act| matches!(it, Act::Alloc { .. });
        let end = acts.iter().rposition(is_request).map_or(0, |it| it + 1);
        let acts = &acts[..end];
        let mut lives = Lives::of(acts);
        let mut iterations = lives.iterations();
        let longest = iterations.iter().map(Range::len).max().unwrap_or(0);
        let valleys = lives.valleys();
        let within = |it: &Range<usize>| {
            let of = |moment| valleys.partition_point(|it| *it < moment);
            of(it.end) - of(it.start) > FEWEST
        };
        let is_coarse = iterations.len() < FEWEST || longest * 2 > acts.len();
        let in_valleys = valleys.len() > FEWEST && (is_coarse || iterations.iter().any(within));
        let mut carried = Vec::new();
        if in_valleys {
            carried = lives.carry(&valleys);
            iterations = valleys.windows(2).map(|it| it[0]..it[1]).collect();
        }
        Self { acts, shapes: Shape::all(&lives, &iterations), lives, iterations, in_valleys, carried }
    }

    /// The acts in other orders; none where iterations are not found, are few, or come in an order that is the program's.
    pub(super) fn other_orders(&self) -> impl Iterator<Item = Vec<Act>> {
        let Self { acts, lives, iterations, shapes, .. } = self;
        let loops = loops(shapes);
        let movable: usize = loops.iter().map(Vec::len).sum();
        let none = movable < FEWEST || repeats(&self.sizes(self.iterations[0].start));
        let order = move |seed| {
            let mut order: Vec<usize> = (0..iterations.len()).collect();
            let mut random = Random::new(seed);
            for turns in &loops {
                let mut taken = turns.clone();
                taken.reverse();
                for at in (1..taken.len()).rev().filter(|_| seed > 0) {
                    taken.swap(at, random.below(at + 1));
                }
                for (turn, it) in turns.iter().zip(taken) {
                    order[*turn] = it;
                }
            }
            lives.in_order(acts, iterations, &order)
        };
        let tried = if none { 0 } else { tried(TRIED, acts.len()) };
        (0..TRIED).rev().take(tried as usize).map(order)
    }

    /// The acts with what is carried freed in other orders: what lives for longer than the requests take that come again and again,
    /// but for one in ten. Where none do, and the program does not repeat itself, what lives from one valley to another.
    pub(super) fn other_frees(&self) -> impl Iterator<Item = Vec<Act>> {
        let sizes = self.sizes(0);
        let same = |distance| sizes.iter().zip(&sizes[distance..]).filter(|(a, b)| a == b);
        let again = |it: &usize| same(*it).count() * 10 >= (sizes.len() - it) * 9;
        let longer = match near(&sizes, AGAIN).into_iter().filter(again).min() {
            Some(shortest) => self.lives.frees_after(shortest),
            // Its steps have parts of other lengths, and valleys in each.
            None if repeats(&sizes) => Vec::new(),
            None => self.carried.clone(),
        };
        other_frees(self.acts, &self.lives, longer)
    }

    /// How long the requests are from an act on, in granules.
    fn sizes(&self, from: usize) -> Vec<u32> {
        let lives = &self.lives;
        let all = lives.requests(from..lives.births.len());
        all.map(|it| lives.bytes[it].div_ceil(GRANULE) as u32).collect()
    }

    /// The acts with each iteration twice, where none comes again behind one of another shape: phases, which last longer in another
    /// run. None where there are no phases, or their ends are not sure: what lies in valleys may be parts of one, and an iteration that
    /// has all but one in twenty requests has others in it.
    pub(super) fn longer_phases(&self) -> Option<Vec<Act>> {
        let Self { acts, lives, iterations, shapes, .. } = self;
        let most = shapes.iter().map(|it| it.requests).max().unwrap_or(0);
        let has_all = most * 20 > shapes.iter().map(|it| it.requests).sum::<usize>() * 19;
        if self.in_valleys || has_all || phases(shapes).is_none_or(|it| it < 2) {
            return None;
        }
        let mut run = Run::default();
        (0..iterations[0].start).for_each(|at| run.act(lives, acts[at], at));
        for iteration in iterations {
            iteration.clone().for_each(|at| run.act(lives, acts[at], at));
            // What the next one would free.
            run.end();
            let again = iteration.clone().filter(|it| !lives.stays(*it));
            again.for_each(|at| run.act(lives, acts[at], at));
        }
        Some(run.acts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(block: u32, mib: u64, stream: u32) -> Act {
        Act::Alloc { block, bytes: mib << 20, stream }
    }

    /// Of each request: MiB, and stream.
    fn asked(acts: &[Act]) -> Vec<(u64, u32)> {
        let of = |act: &Act| match *act {
            Act::Alloc { bytes, stream, .. } => Some((bytes >> 20, stream)),
            _ => None,
        };
        acts.iter().filter_map(of).collect()
    }

    /// Blocks one after the other, each an iteration.
    fn orders(sizes: impl IntoIterator<Item = u64>) -> usize {
        let each = (0..).zip(sizes);
        let acts = each.flat_map(|(block, mib)| [ask(block, mib, 0), Act::Free { block }]);
        Iterations::of(&acts.collect::<Vec<_>>()).other_orders().count()
    }

    #[test]
    fn turns_and_phases_are_the_programs_own_order_and_sizes_that_come_by_chance_may_come_in_another() {
        let turns = [12, 20, 16].repeat(30);
        assert_eq!(orders([&turns[..], &[12, 7, 9]].concat()), 0, "whatever comes at its end");
        assert_eq!(orders(turns), 0);
        assert_eq!(orders([[12; 9], [20; 9]].concat()), 0);
        let mut random = Random::new(7);
        assert_eq!(orders((0..30).map(|_| 12 + 4 * random.below(4) as u64)), TRIED as usize);
        assert_eq!(orders((0..30).map(|it| 40 + it * it % 23)), TRIED as usize);
        // Those of a long record are fewer, and one at least.
        assert_eq!([0, 1, 2, 4, 100].map(|it| tried(TRIED, LONG as usize * it)), [8, 8, 4, 2, 1]);
    }

    #[test]
    fn a_phase_lasts_longer_and_what_stays_is_made_once() {
        let ask = |block, mib| ask(block, mib, 0);
        let free = |block| Act::Free { block };
        let acts = |sizes: &[u64]| -> Vec<Act> {
            let each = (1_u32..).zip(sizes);
            let each = each.flat_map(|(block, mib)| [ask(block, *mib), free(block)]);
            let all = [ask(0, 3)].into_iter().chain(each);
            all.chain([ask(9, 1), free(0)]).collect()
        };
        let longer = Iterations::of(&acts(&[12, 12, 20])).longer_phases().expect("there are two phases");
        assert_eq!(asked(&longer), [3, 12, 12, 12, 12, 20, 1, 20].map(|mib| (mib, 0)));
        let frees = longer.iter().filter(|it| matches!(it, Act::Free { .. }));
        assert!(frees.count() >= 5, "{longer:?}");
        for turns in [[12, 20, 12, 20], [12; 4]] {
            assert_eq!(Iterations::of(&acts(&turns)).longer_phases(), None);
        }
    }

    /// A step of equal layers, which its backward pass takes from the last on, each in a mixed order of its own.
    #[test]
    fn layers_of_one_step_are_no_iterations_whose_frees_change_places() {
        let ask = |block, mib| ask(block, mib, 0);
        let layers = 30;
        let forward = (0..layers).flat_map(|it| {
            let ask = move |number, mib| ask(4 * it + number, mib);
            [ask(0, 8), ask(1, 8), ask(2, 8), ask(3, 2)]
        });
        let backward = (0..layers).rev().flat_map(|it| {
            let mixed = [2, 0, 3, 1].map(|number| Act::Free { block: 4 * it + number });
            let gradient = [ask(200 + it, 8), Act::Free { block: 200 + it }];
            gradient.into_iter().chain(mixed)
        });
        let acts: Vec<Act> = forward.chain(backward).chain([ask(400, 8)]).collect();
        assert_eq!(Iterations::of(&acts).other_frees().count(), 0);
    }

    /// Steps of drawn lengths, of two streams in turn, that each leave a block to the next one.
    fn carrying(steps: u32) -> Vec<Act> {
        let mut random = Random::new(11);
        let mut acts = Vec::new();
        for step in 0..steps {
            let stream = step * 2 / steps;
            let mib = 12 + 4 * random.below(4) as u64;
            acts.extend([ask(2 * step, mib, stream), ask(2 * step + 1, 2, stream)]);
            let last = step.checked_sub(1).map(|it| Act::Free { block: 2 * it + 1 });
            acts.extend(last.into_iter().chain([Act::Free { block: 2 * step }]));
        }
        acts
    }

    #[test]
    fn steps_that_leave_blocks_to_one_another_are_iterations_on_the_streams_of_their_turns() {
        let acts = carrying(40);
        let iterations = Iterations::of(&acts);
        let orders: Vec<_> = iterations.other_orders().collect();
        assert_eq!(orders.len(), TRIED as usize);
        for order in orders {
            assert!(asked(&order).is_sorted_by_key(|it| it.1), "{order:?}");
            let mut live = HashSet::new();
            for act in order {
                match act {
                    Act::Alloc { block, .. } => assert!(live.insert(block)),
                    Act::Free { block } => assert!(live.remove(&block)),
                    _ => {}
                }
            }
            // What the last iteration leaves, and one more where the record ends within an iteration.
            assert!(live.len() <= 2, "{live:?}");
        }
    }
}
