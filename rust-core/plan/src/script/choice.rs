//! Which plan of pinned memory a record gets. Each way to make one is tried by running the record with it.
//!
//! Invariant: where memory for a request is pinned beside a plan, that counts as the plan's.

use std::cell::LazyCell;
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use super::candidate::once;
use super::{Options, Seen, Task, Watch, amount_alone, lanes, set_facts, steady, with_slots};
use crate::file::{GRANULE, MOST_REGION, Plan};
use crate::random::Random;
use crate::record::Record;
use crate::trial::{Tried, try_out};

/// What a plan may pin when its own record is run with it, in thousandths of the largest set: where iterations ask for the
/// same, and where they do not.
const SAME: u64 = 1020;
const DIFFERENT: u64 = 1050;

/// So many requests have places of their own at most: a plan's text has some 60 bytes of each.
const MOST_ONCE: usize = 1 << 16;

/// What has to be pinned beside a plan is added to it so often.
const MOST_ROUNDS: usize = 3;

/// After so many questions whether to stop, over the square of the number of requests, nothing better is looked for: a second or
/// less, since between two of them that takes longer with more requests.
const MOST_ASKED: usize = 1 << 29;
const FEWEST_ASKED: usize = 50;

/// With threads that other ones overtake so often a plan is tried, too.
const INTERLEAVED: u64 = 3;

/// Iterations whose requests have slots, if they pin no more than they may. Else, of a single lane, a place for each request, which
/// keeps that promise; else iterations that take no more than a quarter more than an amount; else what pins least.
pub(super) fn choose(record: &Record, options: &Options, watch: Watch<'_>) -> Plan {
    let lanes = lanes(record);
    let task = Task { record, lanes: &lanes, options, watch };
    let alone = LazyCell::new(|| amount_alone(record, options));
    // Where nearly nothing lies idle there is no need to know what an amount alone would take.
    let too_much = |bytes: u64| {
        let most = bytes / 5 * 4;
        most > record.peak() && most > alone.reserved()
    };
    let mut may_pin = record.peak() / 1000 * DIFFERENT;
    let iterations = steady(record, &lanes).and_then(|(main, steady)| {
        if !steady.varies(record, &lanes) {
            may_pin = record.peak() / 1000 * SAME;
        }
        let count = steady.alike.len();
        let made = with_slots(task, main, steady, &too_much)?;
        (!too_much(made.reserved())).then_some((made, count))
    });
    let once = || once_with_room(task, may_pin);
    let (mut plan, count) = match iterations {
        Some((plan, count)) => match with_all(record, &plan, may_pin) {
            Some(plan) => (plan, count),
            None if lanes.len() > 1 => (plan, count),
            None => once().map_or((plan, count), |plan| (plan, 0)),
        },
        None => {
            let others = in_other_orders(record, lanes.len());
            let runs = || iter::once(record).chain(&others);
            let pinned = |plan: &Plan| runs().map(|it| try_out(it, plan).pinned).sum::<u64>();
            let alone = alone.clone();
            match once() {
                Some(once) if pinned(&once) < pinned(&alone) => (once, 0),
                _ => (alone, 0),
            }
        }
    };
    set_facts(&mut plan, record, count);
    plan
}

/// The plan, and what has to be pinned beside it when its record is run with it. None if that is more than it may pin.
fn with_all(record: &Record, plan: &Plan, may_pin: u64) -> Option<Plan> {
    let mut plan = plan.clone();
    for _ in 0..MOST_ROUNDS {
        let Tried { pins, pinned, .. } = try_out(record, &plan);
        if pinned > may_pin {
            return None;
        }
        if pins == 0 {
            return Some(plan);
        }
        let more = pinned - plan.reserved();
        // The engine's regions are equally long.
        let others = plan.regions.split_off(plan.with_slots());
        let bytes = others.iter().sum::<u64>() + more;
        let count = bytes.div_ceil(MOST_REGION).max(others.len() as u64).max(1);
        let each = bytes.div_ceil(count).next_multiple_of(GRANULE);
        plan.regions.extend(vec![each; count as usize]);
    }
    None
}

/// A place for each request of the record, and room beside it for a run that differs. None if no placement was found that pins no more
/// than a plan may; or if the run emptied its cache: such a plan does not know what it needs after that.
fn once_with_room(task: Task<'_>, may_pin: u64) -> Option<Plan> {
    let Task { options, watch, .. } = task;
    let requests: usize = task.lanes.iter().map(Vec::len).sum();
    if !(1..=MOST_ONCE).contains(&requests) || !task.record.clears.is_empty() {
        return None;
    }
    let most_asked = (MOST_ASKED / requests.pow(2)).max(FEWEST_ASKED);
    let (asked, is_enough) = (AtomicUsize::new(0), AtomicBool::new(false));
    let stop = || {
        let is_long = asked.fetch_add(1, Relaxed) > most_asked;
        is_long || is_enough.load(Relaxed) || (watch.stop)()
    };
    let seen = |it: Seen| {
        is_enough.fetch_or(it.peak <= may_pin, Relaxed);
        (watch.seen)(it);
    };
    let options = Options { together: true, ..options.clone() };
    let watch = Watch { stop: &stop, seen: &seen };
    let mut plan = once(Task { options: &options, watch, ..task });
    if plan.reserved() > may_pin {
        return None;
    }
    let room = (may_pin - plan.reserved()) / GRANULE * GRANULE;
    if let Some(last) = plan.regions.last_mut() {
        *last += room.min(MOST_REGION - *last);
    }
    Some(plan)
}

/// Of a record with several lanes, what it would be if they came in other orders.
fn in_other_orders(record: &Record, lanes: usize) -> Vec<Record> {
    let many = if lanes > 1 { INTERLEAVED } else { 0 };
    (0..many).map(|seed| record.interleaved(&mut Random::new(seed))).collect()
}
