//! From a record to a plan.
//!
//! First the iterations that are alike are found: between the program's marks, or else in the sequences of sizes and
//! lifetimes ([`iterations`], [`period`]). Requests that come again in them ([`steady`], [`align`]) get lifetimes on one scale
//! ([`clock`], [`spans`]). They are placed as a cyclic instance, lanes together or apart ([`groups`], [`placing`]), with the
//! requests before them, on a line of bytes that is cut into regions ([`line`]). What no slot serves when the record is
//! replayed on the plan gets an amount ([`amount`]).
//!
//! Where that pins more than a plan may, or nothing repeats, each request of the record has a place of its own, or the plan is an
//! amount alone: which, is found by running the record with it ([`choice`]). Of device memory the caller tries each way to plan a
//! record ([`candidate`]) instead.

mod align;
mod amount;
mod candidate;
mod choice;
mod clears;
mod clock;
mod groups;
mod iterations;
mod line;
mod period;
mod placing;
mod spans;
mod spare;
mod steady;
#[cfg(test)]
mod tests;

use crate::file::{Facts, Lane, MOST_LANES, MOST_REGION, MadeFor, Plan};
use crate::record::{Levels, Record, Request};
use crate::replay::check_plan;
pub use candidate::How;
pub(crate) use candidate::{Candidate, candidates};
pub(crate) use clears::{has_pool, looks};
use groups::Group;
use iterations::steady_by;
use line::Walls;
pub(crate) use period::{near, repeats};
use pinbuddy_device::Kind;
use spans::Spans;
use steady::Steady;

/// One of so many requests at least must come again; else what does may be chance.
const COMING_AGAIN: usize = 8;

/// The most groups that have regions of their own where the cache is emptied: each region is a pin.
const MOST_APART: usize = 8;

/// Slots that serve less than one of so many requests are not worth it.
const MOST_MISSED: u64 = 4;

/// What a plan is made for, and with how much.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The run that the record is of.
    pub made_for: MadeFor,
    /// How many threads look for places; 0 is 1.
    pub threads: usize,
    /// Whether first fit is good enough.
    pub quick: bool,
    /// Whether no region has to be one that can be given back.
    pub together: bool,
    /// It is for device memory, where PyTorch's allocator stands behind the plan. What lives while little is in use has
    /// regions of its own, whether or not the record empties the cache, so that the others can be given back; and requests
    /// without a slot are left to that allocator, if room for them would take too much.
    pub device: bool,
    /// What is shorter than so many bytes and is freed has bytes that nothing longer has: late by chance, it is in no one's way.
    pub apart_below: u64,
    /// Of device memory: which of PyTorch's allocators serves what the plan does not. If that is not known, a plan is made where
    /// it is better than both.
    pub behind: Option<Kind>,
}

/// How far the search is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The bytes that what is placed now takes at best so far.
    pub peak: u64,
    /// The least that any placement of it takes.
    pub bound: u64,
}

/// Who watches a search: says when to stop, and hears of what is found.
#[derive(Clone, Copy)]
pub struct Watch<'w> {
    /// Whether to stop now.
    pub stop: &'w (dyn Fn() -> bool + Sync),
    /// Called with each placement that is better than those before. Parts of a plan are placed one after the other.
    pub seen: &'w (dyn Fn(Seen) + Sync),
}

/// A record that is planned, its requests by lanes, and how.
#[derive(Clone, Copy)]
struct Task<'t> {
    record: &'t Record,
    lanes: &'t [Vec<u32>],
    options: &'t Options,
    watch: Watch<'t>,
}

/// Makes a plan of what there is in `record`. Asks `stop` every few milliseconds, from several threads;
/// once it says so, answers with the best plan so far. Where the lower bound is not reached within a
/// thousandth (of pinned memory, five) it goes on until then.
#[must_use]
pub fn plan(record: &Record, options: &Options, stop: &(dyn Fn() -> bool + Sync)) -> Plan {
    let seen = &|_| {};
    plan_watched(record, options, Watch { stop, seen })
}

/// The same, and says what was found so far.
#[must_use]
pub fn plan_watched(record: &Record, options: &Options, watch: Watch<'_>) -> Plan {
    choice::choose(&record.without_the_end(), options, watch)
}

fn set_facts(plan: &mut Plan, record: &Record, iterations: usize) {
    let reserved = plan.reserved();
    let facts = &mut plan.facts;
    facts.requests = record.len() as u64;
    facts.iterations = iterations as u64;
    // What is longer than any region is in no plan.
    facts.peak = match record.requests.iter().all(|it| it.bytes() <= MOST_REGION) {
        true => record.peak(),
        false => amount::peak(record, &(0..record.len() as u32).collect::<Vec<_>>()),
    };

    if reserved > 0 {
        facts.efficiency = facts.peak as f64 / reserved as f64;
    }
}

/// The requests of each lane, in order. What is too long for a region is nobody's.
fn lanes(record: &Record) -> Vec<Vec<u32>> {
    let mut lanes: Vec<Vec<u32>> = Vec::new();
    for (number, request) in (0..).zip(&record.requests) {
        let lane = request.lane as usize;
        if lane >= MOST_LANES || request.bytes() > MOST_REGION {
            continue;
        }
        if lane >= lanes.len() {
            lanes.resize_with(lane + 1, Vec::new);
        }
        lanes[lane].push(number);
    }
    lanes
}

/// The lane that asks for most, and what comes again.
fn steady(record: &Record, lanes: &[Vec<u32>]) -> Option<(usize, Steady)> {
    let bytes = |lane: &Vec<u32>| -> u64 {
        let requests = lane.iter().map(|&it| &record.requests[it as usize]);
        requests.map(|it| u64::from(it.granules)).sum()
    };
    let main = (0..lanes.len()).max_by_key(|&lane| bytes(&lanes[lane]))?;
    let steady = steady_by(record, lanes, main)?;
    (steady.regular() * COMING_AGAIN >= record.len()).then_some((main, steady))
}

fn amount_alone(record: &Record, options: &Options) -> Plan {
    let (regions, classes) = amount::alone(record);
    Plan { made_for: options.made_for.clone(), regions, classes, ..Plan::default() }
}

/// A plan whose slots are what comes again in `steady`, the iterations of lane `main`. None if its regions would be `too_much`,
/// or slots serve too little.
fn with_slots(task: Task<'_>, main: usize, steady: Steady, too_much: &dyn Fn(u64) -> bool) -> Option<Plan> {
    let Task { record, lanes, options, .. } = task;
    let ease = !options.quick || steady.last_two(&Levels::of(record)).is_some();
    let groups = groups::groups(record, lanes, steady, main);
    let spans: Vec<Spans<'_>> = groups.iter().map(|group| Spans::of(record, &group.steady, &group.lanes)).collect();
    if spans.first().is_none_or(|it| it.spans.is_empty()) {
        // Requests of equal sizes that were never freed: nothing comes again.
        return None;
    }
    let bounds = spans.iter().map(Spans::bound);
    if too_much(bounds.fold(0, u64::saturating_add)) {
        return None;
    }
    let placed = place_all(task, &groups, spans, ease);
    let mut plan = of_places(task, main, &placed);
    let replayed = check_plan(record, &plan);
    let spare = amount::beside(record, &plan, &replayed);
    let with_spare = plan.reserved() + spare.iter().sum::<u64>();
    if !(options.device && too_much(with_spare)) {
        plan.regions.extend(spare);
    }
    (replayed.hits * MOST_MISSED >= record.len() as u64).then_some(plan)
}

/// Places groups one behind the other; `ease` says whether turns and room are looked for first.
fn place_all<'s>(task: Task<'_>, groups: &[Group], spans: Vec<Spans<'s>>, ease: bool) -> Vec<(Spans<'s>, Places)> {
    let apart = groups.len() <= MOST_APART;
    let mut end = 0;
    let place_next = |(group, mut spans): (&Group, Spans<'s>)| {
        if ease {
            placing::ease(&mut spans, task.options, task.watch);
        }
        let places = place(task, group, &spans, end, apart);
        end = places.end;
        (spans, places)
    };
    groups.iter().zip(spans).map(place_next).collect()
}

/// The plan of groups whose requests have places.
fn of_places(task: Task<'_>, main: usize, placed: &[(Spans<'_>, Places)]) -> Plan {
    let record = task.record;
    let all_early = placed.iter().flat_map(|(_, it)| &it.early);
    let mut early: Vec<(u32, u64)> = all_early.copied().collect();
    early.sort_unstable();
    let walls = Walls::new(placed.iter().flat_map(|(_, it)| &it.walls).copied());
    let mut plan = written(task, &early, placed, &walls);
    let of_the_clock: Vec<u32> =
        early.iter().map(|it| it.0).filter(|&it| record.requests[it as usize].lane as usize == main).collect();
    plan.lanes[main].clears = clears::foreseen(record, &placed[0].0, main, &of_the_clock);
    let bound: u64 = placed.iter().map(|(_, it)| it.bound).sum();
    plan.facts = Facts {
        lower_bound: bound,
        gap_percent: (plan.reserved() as f64 / bound.max(1) as f64 - 1.0).max(0.0) * 100.0,
        ..Facts::default()
    };
    plan
}

/// Where the requests of a group of lanes go.
struct Places {
    /// Those before the iterations: numbers of requests, with their offsets.
    early: Vec<(u32, u64)>,
    /// Those that come again, in the order of [`Spans::blocks`].
    again: Vec<u64>,
    /// The first byte after all.
    end: u64,
    /// The least bytes that any placement takes.
    bound: u64,
    walls: Vec<u64>,
}

/// Places a group from `base` on, what lives where the cache is emptied `apart` from all else.
fn place(task: Task<'_>, group: &Group, spans: &Spans<'_>, base: u64, apart: bool) -> Places {
    let Task { record, options, .. } = task;
    let early = group.early(record, task.lanes, spans);
    let request = |number: &u32| &record.requests[*number as usize];
    let all = to_place(task, spans, &early, apart);
    let placed = placing::place(&all, base, options, task.watch);
    let mut walls = Vec::new();
    if placed.is_apart {
        let wall = placed.wall.unwrap_or(placed.end);
        if !options.device {
            let bytes = early.iter().map(|it| request(it).bytes()).chain(spans.sizes());
            let places = placed.offsets.iter().copied().zip(bytes);
            walls.extend(line::parts(places, base..wall));
        }
        walls.extend([base, wall, placed.end]);
    }
    let mut again = placed.offsets;
    let offsets: Vec<u64> = again.drain(..early.len()).collect();
    if options.device && placed.is_apart {
        let all = offsets.iter().chain(&again).copied();
        let sizes = early.iter().map(|it| request(it).bytes());
        let places: Vec<(u64, u64)> = all.zip(sizes.chain(spans.sizes())).collect();
        walls.extend(clears::pools(record, &early, |it| spans.keeps(it), &places));
        walls.extend(clears::states(record, &early, spans, &places));
    }
    Places { early: early.into_iter().zip(offsets).collect(), again, end: placed.end, bound: placed.bound, walls }
}

/// The blocks of a group: the early ones, then those that come again.
fn to_place(task: Task<'_>, spans: &Spans<'_>, early: &[u32], apart: bool) -> placing::Group {
    let Task { record, options, .. } = task;
    let early = || {
        let requests = early.iter().map(|it| (it, &record.requests[*it as usize]));
        requests.map(|(number, it)| (record.late.get(number), it))
    };
    let kind = |it: &Request| match spans.keeps(it) {
        true => placing::Kind::Kept,
        false if it.bytes() < options.apart_below => placing::Kind::Again,
        false => placing::Kind::Passing,
    };
    let late = |which: usize| {
        let late = early().map(|(late, it)| spans.late(it, late.map(|it| it[which])));
        late.chain(spans.again()).collect()
    };
    let across = clears::across(spans, record, options.device).filter(|_| apart);
    placing::Group {
        blocks: early().map(|it| spans.early(it.1)).chain(spans.again()).collect(),
        kinds: early().map(|it| kind(it.1)).chain(std::iter::repeat_n(placing::Kind::Again, spans.len())).collect(),
        period: Some(spans.line()),
        apart: across.map(|across| {
            let kept = early().map(|it| spans.keeps(it.1));
            let by_turns = across.iter().copied().cycle();
            kept.chain(by_turns.take(spans.len())).collect()
        }),
        late: match record.late.is_empty() {
            true => Vec::new(),
            false => [0, 1].map(late).into(),
        },
        emptied: !record.clears.is_empty(),
    }
}

fn bytes_of(record: &Record, number: u32) -> u64 {
    record.requests[number as usize].bytes()
}

/// The plan of places on the line: slots and sequences.
fn written(task: Task<'_>, places: &[(u32, u64)], groups: &[(Spans<'_>, Places)], walls: &Walls) -> Plan {
    let record = task.record;
    let mut plan = Plan {
        made_for: task.options.made_for.clone(),
        lanes: vec![Lane::default(); task.lanes.len()],
        ..Plan::default()
    };
    let early = places.iter().map(|&(number, at)| (at, bytes_of(record, number)));
    let again = groups.iter().flat_map(|(spans, placed)| placed.again.iter().copied().zip(spans.sizes()));
    let all: Vec<(u64, u64)> = early.chain(again).collect();
    let slots = line::cut(&mut plan, &all, walls);
    let (early, mut again) = slots.split_at(places.len());
    for (&(number, _), &slot) in places.iter().zip(early) {
        let lane = record.requests[number as usize].lane as usize;
        plan.lanes[lane].prologue.push(slot);
    }
    for (spans, placed) in groups {
        let own;
        (own, again) = again.split_at(placed.again.len());
        // By turns, and within a turn by lanes and positions: as the spans are.
        for (span, &slot) in spans.spans.iter().cycle().zip(own) {
            let lane = &mut plan.lanes[span.lane];
            lane.period.push(slot);
            lane.turns = spans.turns as u32;
        }
    }
    plan
}
