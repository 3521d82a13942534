//! Iterations that are alike, and which of their requests come again.
//!
//! One iteration is the reference: the one that comes most often, or where no two are equal, the one
//! that most others resemble. A request of it is *regular* if at least half of the iterations alike have
//! it. All else is irregular, and nobody's business here.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use super::align::{NONE, align};
use crate::record::{Levels, NEVER, Record};

/// Of how many iterations the reference is chosen where no two are equal.
const CANDIDATES: usize = 16;

/// A program that goes on holds as much after each iteration as before it, but for one part in so many of the most that it has: it
/// may keep a number of each. What a layer of a network adds, or the step from one phase to another, is more.
const UNSTEADY: u64 = 128;

/// An iteration in which the record has requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Iteration {
    /// Its first moment.
    pub(super) begin: u32,
    /// The first moment after it.
    pub(super) end: u32,
    /// Its part of the main lane.
    own: [usize; 2],
}

impl Iteration {
    fn own(self) -> Range<usize> {
        self.own[0]..self.own[1]
    }
}

/// The regular requests of a lane.
#[derive(Clone, Debug, Default)]
pub(super) struct Positions {
    pub(super) granules: Vec<u32>,
    /// For each iteration, of each position, the request's number, or [`NONE`]. Nothing without positions.
    pub(super) requests: Vec<Vec<u32>>,
}

/// What comes again.
#[derive(Clone, Debug)]
pub(super) struct Steady {
    /// Those alike, in order; two at least.
    pub(super) alike: Vec<Iteration>,
    /// Of each of them, whether it asks for just the sizes of the reference.
    same: Vec<bool>,
    pub(super) lanes: Vec<Positions>,
}

impl Steady {
    /// Looks for it in the iterations between `cuts`.
    pub(super) fn find(record: &Record, lanes: &[Vec<u32>], main: usize, cuts: &[u32]) -> Option<Self> {
        let main = &lanes[main];
        let mut begun = 0;
        let mut begun_before = |moment: &u32| {
            let next = main[begun..].iter().take_while(|it| record.requests[**it as usize].begin < *moment);
            begun += next.count();
            begun
        };
        let begun: Vec<usize> = cuts.iter().map(&mut begun_before).collect();
        let own = cuts.windows(2).zip(begun.windows(2));
        let all = own.map(|(cut, own)| Iteration { begin: cut[0], end: cut[1], own: [own[0], own[1]] });
        let all: Vec<Iteration> = all.filter(|it| !it.own().is_empty()).collect();
        let reference = reference(record, main, &all)?;
        let model = sorted(record, main, all[reference]);
        let alike = all.iter().copied();
        let alike = alike.filter(|it| resemblance(&model, &sorted(record, main, *it)) >= 50).collect();
        let alike = without_beginning(record, main, alike);
        // The reference may have been left out as part of the beginning.
        let model = *alike.iter().find(|&&it| it == all[reference]).or(alike.last())?;
        let reference = sizes(record, &main[model.own()]);
        let same = alike.iter().map(|it| sizes(record, &main[it.own()]) == reference);
        let same = same.collect();
        let lanes = lanes.iter().map(|lane| positions(record, lane, model, &alike)).collect();
        (alike.len() >= 2).then_some(Self { alike, same, lanes })
    }

    /// The moment at which the first iteration alike begins.
    pub(super) fn begin(&self) -> u32 {
        self.alike[0].begin
    }

    /// The first moment after the last one.
    pub(super) fn end(&self) -> u32 {
        self.alike.last().map_or(0, |it| it.end)
    }

    /// How many iterations there are, and how many requests come again in each.
    pub(super) fn shape(&self) -> (usize, usize) {
        let positions = self.lanes.iter().map(|it| it.granules.len());
        (self.alike.len(), positions.sum())
    }

    /// The moments of the last two iterations, if the program would go on with such: one follows the other, as much lives after
    /// each as before it, and they ask for the same sizes, unless no two do.
    pub(super) fn last_two(&self, levels: &Levels<'_>) -> Option<[Range<u32>; 2]> {
        let ([.., before, last], [.., same_before, same]) = (&*self.alike, &*self.same) else {
            return None;
        };
        let varies = self.same.iter().filter(|it| **it).count() < 2;
        let is_steady = before.end == last.begin
            && (varies || *same_before && *same)
            && is_level(levels, before)
            && is_level(levels, last);
        is_steady.then(|| [before, last].map(|it| it.begin..it.end))
    }

    /// Whether most iterations leave as much as they found.
    pub(super) fn is_level(&self, levels: &Levels<'_>) -> bool {
        let level = self.alike.iter().filter(|it| is_level(levels, it));
        level.count() * 2 > self.alike.len()
    }

    /// Lanes and sizes of regular requests.
    pub(super) fn sizes(&self) -> HashSet<(u32, u32)> {
        let lanes = (0..).zip(&self.lanes);
        lanes.flat_map(|(lane, positions)| positions.granules.iter().map(move |&it| (lane, it))).collect()
    }

    /// Whether more than a twentieth of the requests since the first iteration alike is irregular.
    pub(super) fn varies(&self, record: &Record, lanes: &[Vec<u32>]) -> bool {
        let since = |&&number: &&u32| {
            let begin = record.requests[number as usize].begin;
            let before = self.alike.partition_point(|it| it.begin <= begin);
            before > 0 && begin < self.alike[before - 1].end
        };
        let own = lanes.iter().zip(&self.lanes);
        let own = own.filter(|(_, positions)| !positions.granules.is_empty());
        let all = own.flat_map(|(lane, _)| lane).filter(since).count();
        self.regular() * 20 < all * 19
    }

    /// The requests at one position of a lane.
    pub(super) fn of(&self, lane: usize, position: usize) -> impl Iterator<Item = u32> {
        let requests = self.lanes[lane].requests.iter();
        let numbers = requests.map(move |it| it[position]);
        numbers.filter(|&number| number != NONE)
    }

    /// How many requests come again.
    pub(super) fn regular(&self) -> usize {
        let all = self.lanes.iter().flat_map(|it| it.requests.iter().flatten());
        all.filter(|&&number| number != NONE).count()
    }
}

/// Whether as much lives after an iteration as before it. Frees behind a record's last request are not known, so each ends with
/// its last request.
fn is_level(levels: &Levels<'_>, it: &Iteration) -> bool {
    let [before, after] = [it.begin, it.end].map(|it| levels.at_last_before(it));
    before.abs_diff(after) <= levels.record.peak() / UNSTEADY
}

/// The part of a lane that lies in an iteration.
fn within(record: &Record, lane: &[u32], iteration: Iteration) -> Range<usize> {
    let begun = |moment| lane.partition_point(|&it| record.requests[it as usize].begin < moment);
    begun(iteration.begin)..begun(iteration.end)
}

fn sizes(record: &Record, part: &[u32]) -> Vec<u32> {
    let sizes = part.iter().map(|&it| record.requests[it as usize].granules);
    sizes.collect()
}

fn sorted(record: &Record, lane: &[u32], iteration: Iteration) -> Vec<u32> {
    let mut sizes = sizes(record, &lane[iteration.own()]);
    sizes.sort_unstable();
    sizes
}

/// How many sizes are in both, in percent of all.
fn resemblance(a: &[u32], b: &[u32]) -> usize {
    let (mut i, mut j, mut common) = (0, 0, 0_usize);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                common += 1;
                i += 1;
                j += 1;
            }
        }
    }
    (200 * common).checked_div(a.len() + b.len()).unwrap_or(0)
}

fn reference(record: &Record, lane: &[u32], all: &[Iteration]) -> Option<usize> {
    let state = RandomState::new();
    let mut equal: HashMap<u64, (usize, usize, usize)> = HashMap::new();
    for (index, &iteration) in all.iter().enumerate() {
        let sizes = sizes(record, &lane[iteration.own()]);
        let group = equal.entry(state.hash_one(&sizes)).or_default();
        *group = (group.0 + 1, sizes.len(), index);
    }
    let repeated = equal.values().filter(|group| group.0 > 1);
    if let Some(&(.., last)) = repeated.max_by_key(|group| (group.0 * group.1, group.2)) {
        return Some(last);
    }
    let from = all.len().saturating_sub(CANDIDATES);
    let some: Vec<Vec<u32>> = all[from..].iter().map(|&it| sorted(record, lane, it)).collect();
    // Resembling many counts, and so does being long: a short one resembles nothing for long.
    let score = |one: &Vec<u32>| -> usize { some.iter().map(|it| resemblance(one, it)).sum() };
    (0..some.len()).max_by_key(|&at| score(&some[at]) * some[at].len()).map(|at| from + at)
}

/// Leaves out iterations up to the last that begins something that lives on and on: what a program
/// makes once and keeps it makes in its first iterations. Where most do so, none is left out.
fn without_beginning(record: &Record, lane: &[u32], mut alike: Vec<Iteration>) -> Vec<Iteration> {
    let Some(last) = alike.last().copied() else {
        return alike;
    };
    // What the last iterations begin may live for long, or only until after the record.
    let known = alike.len().saturating_sub(if alike.len() > 3 { 3 } else { 2 });
    let begins = |it: Iteration| {
        let mut own = lane[it.own()].iter();
        own.any(|&number| {
            let over = record.requests[number as usize].over;
            over == NEVER || over >= last.end
        })
    };
    let those: Vec<usize> = (0..known).filter(|&at| begins(alike[at])).collect();
    if let Some(&at) = those.last()
        && those.len() * 2 <= alike.len()
    {
        alike.drain(..=at);
    }
    alike
}

fn positions(record: &Record, lane: &[u32], model: Iteration, alike: &[Iteration]) -> Positions {
    let part = |iteration| &lane[within(record, lane, iteration)];
    let reference = sizes(record, part(model));
    if reference.is_empty() {
        return Positions::default();
    }
    let partners: Vec<Vec<u32>> =
        alike.iter().map(|&iteration| align(&reference, &sizes(record, part(iteration)))).collect();
    let regular: Vec<usize> = (0..reference.len())
        .filter(|&at| {
            let count = partners.iter().filter(|it| it[at] != NONE).count();
            count >= 2 && count * 2 >= alike.len()
        })
        .collect();
    let requests = alike.iter().zip(&partners).map(|(&iteration, partner)| {
        let part = part(iteration);
        let number = |&at: &usize| match partner[at] {
            NONE => NONE,
            place => part[place as usize],
        };
        regular.iter().map(number).collect()
    });
    Positions { requests: requests.collect(), granules: regular.iter().map(|&at| reference[at]).collect() }
}
