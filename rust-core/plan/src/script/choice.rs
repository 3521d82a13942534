//! Which plan of pinned memory a record gets. Each way to make one is tried by running the record with it.
//!
//! Invariant: where memory for a request is pinned beside a plan, that counts as the plan's.

use std::cell::LazyCell;
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use super::amount::Regions;
use super::candidate::once;
use super::{Options, Seen, Task, Watch, amount_alone, lanes, set_facts, steady, with_slots};
use crate::file::{GRANULE, MOST_REGION, Plan};
use crate::random::Random;
use crate::record::{Record, Request};
use crate::trial::{Tried, try_out};

/// What a plan may pin when its own record is run with it, in thousandths of the largest set: where iterations ask for the
/// same, and where they do not.
const SAME: u64 = 1020;
const DIFFERENT: u64 = 1050;

/// So many requests have places of their own at most: a plan's text has some 60 bytes of each.
const MOST_ONCE: usize = 1 << 16;

/// Room that is tried for what no slot serves, in thousandths of what is pinned for it one by one. With the last, less is missing than
/// would be worth another look.
const ROOM: [u64; 8] = [200, 400, 600, 800, 1000, 1250, 1500, 2000];

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
    let task = Task {
        record,
        lanes: &lanes,
        options,
        watch,
    };
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
        let (plan, tried) = with_slots(task, main, steady, &too_much)?;
        let (plan, is_served) = with_room(record, plan, tried);
        (!too_much(plan.reserved())).then_some((plan, is_served, count))
    });
    let once = || once_with_room(task, may_pin);
    let (mut plan, count) = match iterations {
        Some((plan, is_served, count))
            if lanes.len() > 1 || is_served && plan.reserved() <= may_pin =>
        {
            (plan, count)
        }
        Some((plan, _, count)) => once().map_or((plan, count), |plan| (plan, 0)),
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

/// The plan with regions for what no slot serves; and whether nothing is pinned beside them when its record is run with it.
fn with_room(record: &Record, mut plan: Plan, tried: Tried) -> (Plan, bool) {
    if tried.pins == 0 {
        return (plan, true);
    }
    let most = tried.pinned - plan.reserved();
    let longest = record.requests.iter().map(Request::bytes).max();
    let longest = longest.unwrap_or(0).min(most);
    let count = plan.regions.len();
    for part in ROOM {
        for regions in Regions::ways(most / 1000 * part, longest) {
            plan.regions.truncate(count);
            plan.regions.extend(regions.lengths());
            if try_out(record, &plan).pins == 0 {
                return (plan, true);
            }
        }
    }
    (plan, false)
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
    let options = Options {
        together: true,
        ..options.clone()
    };
    let watch = Watch {
        stop: &stop,
        seen: &seen,
    };
    let mut plan = once(Task {
        options: &options,
        watch,
        ..task
    });
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
    (0..many)
        .map(|seed| record.interleaved(&mut Random::new(seed)))
        .collect()
}
