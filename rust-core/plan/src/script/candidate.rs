//! Ways to plan a record of one lane, of which the best is found by trial.
//!
//! Invariant: a plan of any of them holds all invariants of plans. Which one is any good nothing here knows.

use std::ops::Range;

use super::clears;
use super::iterations;
use super::line::Walls;
use super::placing::{self, Kind};
use super::steady::Steady;
use super::{Options, Task, Watch, lanes, set_facts, with_slots, written};
use crate::Block;
use crate::file::Plan;
use crate::record::{Levels, Record, Request};

/// A way to plan a record of one lane.
#[derive(Clone, Debug)]
pub(crate) struct Candidate(Option<Steady>);

/// What a plan takes for an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The whole record, which does not come again.
    Whole,
    /// A part of it that came so often.
    Iterations(usize),
}

/// So many that are steady are tried; and after the whole record, so many that are not.
const MOST_STEADY: usize = 2;
const MOST_UNSTEADY: usize = 3;

/// All ways to plan a record, the most general first: iterations with which the program would go on; then the whole record,
/// which may have just one; then, if `all` are wanted, what comes again within it. Of a `program`, which may have failed in its
/// first iteration, the whole record counts only if it has some.
pub(crate) fn candidates(record: &Record, all: bool, program: bool, stop: &dyn Fn() -> bool) -> Vec<Candidate> {
    let lanes = lanes(record);
    let steady = match lanes.is_empty() {
        true => Vec::new(),
        false => iterations::all(record, &lanes, 0, stop),
    };
    let found = steady.into_iter().map(|it| Candidate(Some(it)));
    let levels = &Levels::of(record);
    let is_steady = |it: &Candidate| it.0.as_ref().is_some_and(|it| it.last_two(levels).is_some());
    let (mut steady, mut others): (Vec<_>, Vec<_>) = found.partition(is_steady);
    let is_level = |it: &Candidate| it.0.as_ref().is_some_and(|it| it.is_level(levels));
    let has_some = !steady.is_empty() || others.iter().any(is_level);
    let whole = (!program || has_some).then_some(Candidate(None));
    // Marks and sizes often say the same.
    steady.dedup_by_key(|it| it.0.as_ref().map(Steady::shape));
    steady.truncate(MOST_STEADY);
    others.truncate(if all { MOST_UNSTEADY } else { 0 });
    steady.into_iter().chain(whole).chain(others).collect()
}

impl Candidate {
    pub(crate) fn how(&self) -> How {
        match &self.0 {
            Some(steady) => How::Iterations(steady.alike.len()),
            None => How::Whole,
        }
    }

    /// How many iterations are alike.
    pub(crate) fn iterations(&self) -> usize {
        self.0.as_ref().map_or(0, |it| it.alike.len())
    }

    /// The moments of the last two iterations, if the program would go on with such.
    pub(crate) fn last_iterations(&self, record: &Record) -> Option<[Range<u32>; 2]> {
        self.0.as_ref()?.last_two(&Levels::of(record))
    }

    /// The plan, if there is one whose regions are not `too_much`.
    pub(crate) fn plan(
        &self,
        record: &Record,
        options: &Options,
        too_much: &dyn Fn(u64) -> bool,
        watch: Watch<'_>,
    ) -> Option<Plan> {
        let task = Task { record, lanes: &lanes(record), options, watch };
        let mut plan = match &self.0 {
            Some(steady) => with_slots(task, 0, steady.clone(), too_much)?,
            None => whole(task),
        };
        set_facts(&mut plan, record, self.iterations());
        Some(plan)
    }
}

/// Each request of the record has a place, and the record is the iteration. What it does not free has its bytes for good.
fn whole(task: Task<'_>) -> Plan {
    let mut plan = once(task);
    for lane in &mut plan.lanes {
        lane.period = std::mem::take(&mut lane.prologue);
    }
    plan
}

/// The same, and the record comes once.
pub(super) fn once(task: Task<'_>) -> Plan {
    let record = task.record;
    let numbers: Vec<u32> = task.lanes.iter().flatten().copied().collect();
    let request = |number: &u32| &record.requests[*number as usize];
    let end = record.now + 1;
    let blocks: Vec<Block> = numbers.iter().map(|it| request(it).block(end)).collect();
    let is_pooled = |it: &Request| task.options.device && clears::is_pooled(record, it);
    let kinds: Vec<Kind> = (numbers.iter())
        .map(|it| match is_pooled(request(it)) {
            true => Kind::Kept,
            false => Kind::Again,
        })
        .collect();
    // Weights and what else stays for long: the rest can be given back.
    let stays = |it: &Block| (it.upper - it.lower) * 2 >= u64::from(end);
    let apart = blocks.iter().zip(&kinds);
    let apart = apart.map(|(block, kind)| stays(block) || *kind == Kind::Kept);
    let group = placing::Group {
        period: None,
        late: Vec::new(),
        apart: Some(apart.collect()),
        kinds,
        emptied: !record.clears.is_empty(),
        blocks,
    };
    let placed = placing::place(&group, 0, task.options, task.watch);
    let sizes = group.blocks.iter().map(|it| it.size);
    let places: Vec<(u64, u64)> = placed.offsets.iter().copied().zip(sizes).collect();
    // Pools come first on the line.
    let pooled = places.iter().zip(&group.kinds);
    let pooled = pooled.filter(|it| *it.1 == Kind::Kept);
    let end = pooled.map(|(it, _)| it.0 + it.1).max();
    let pools = clears::pools(record, &numbers, is_pooled, &places);
    let walls = Walls::new(pools.into_iter().chain(end).chain(placed.wall));
    let early: Vec<(u32, u64)> = numbers.into_iter().zip(placed.offsets).collect();
    let mut plan = written(task, &early, &[], &walls);
    plan.facts.lower_bound = placed.bound;
    plan
}
