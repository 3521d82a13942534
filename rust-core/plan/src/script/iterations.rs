//! Where iterations begin: at the program's marks, or else after a period that is found.
//!
//! Of several possible periods the one counts whose plan would take the least. A layer's sizes may repeat
//! within an iteration; but their lifetimes do not, and a request that lives for as long as the longest of
//! all layers' meets far too many others.

use super::amount::peak;
use super::period;
use super::spans::Spans;
use super::steady::Steady;
use crate::record::{NEVER, Record};

/// Periods that take at most so many thousandths more than another are as good.
const AS_GOOD: u64 = 1;

/// What a period would come to.
struct Tried {
    steady: Steady,
    /// Requests that have a place, and how many of a thousand these are since the first iteration.
    covered: usize,
    share: usize,
    /// Bytes: what their places take at least, and the most that all others have at once.
    cost: u64,
}

/// What comes again, in iterations of the lane `main`.
pub(super) fn steady_by(record: &Record, lanes: &[Vec<u32>], main: usize) -> Option<Steady> {
    marked(record, lanes, main).or_else(|| {
        let found = found(record, lanes, main, true, &|| false);
        Some(found.into_iter().next()?.steady)
    })
}

/// All that may come again, the likeliest first.
pub(super) fn all(record: &Record, lanes: &[Vec<u32>], main: usize, stop: &dyn Fn() -> bool) -> Vec<Steady> {
    let marked = marked(record, lanes, main);
    let found = found(record, lanes, main, false, stop).into_iter();
    marked.into_iter().chain(found.map(|it| it.steady)).collect()
}

/// The program's marks part its iterations.
fn marked(record: &Record, lanes: &[Vec<u32>], main: usize) -> Option<Steady> {
    Steady::find(record, lanes, main, &cuts(record, Some(0), record.marks.clone()))
}

fn cuts(record: &Record, begin: Option<u32>, within: Vec<u32>) -> Vec<u32> {
    let mut cuts: Vec<u32> = begin.into_iter().chain(within).chain([record.now]).collect();
    cuts.dedup();
    cuts
}

/// What comes again after periods that are found, the best first; no more are tried after one that is as good as can be,
/// if that is `enough`.
fn found(record: &Record, lanes: &[Vec<u32>], main: usize, enough: bool, stop: &dyn Fn() -> bool) -> Vec<Tried> {
    let lane = &lanes[main];
    let begin = |&number: &u32| record.requests[number as usize].begin;
    let sizes = lane.iter().map(|&it| record.requests[it as usize].granules);
    let sizes: Vec<u32> = sizes.collect();
    let least = peak(record, lane);
    let mut tried: Vec<Tried> = Vec::new();
    for period in period::find(&sizes, &lives(record, lane), enough) {
        let from = lane[sizes.len() % period..].iter();
        // What comes before the first whole iteration may be the end of one: its requests would be taken for
        // the first ones of others.
        let cuts = cuts(record, None, from.step_by(period).map(begin).collect());
        let Some(steady) = Steady::find(record, lanes, main, &cuts) else {
            continue;
        };
        let it = Tried::new(record, lane, main, steady);
        let is_best = it.cost <= least + least / 1000 * AS_GOOD && it.covered * 8 >= lane.len() * 7;
        tried.push(it);
        if is_best && enough || stop() {
            break;
        }
    }
    // The likeliest comes first of those that cover as many.
    tried.sort_by_key(|it| std::cmp::Reverse(it.covered));
    let most = tried.iter().map(|it| it.share).max().unwrap_or(0);
    let mut best = None;
    for (at, it) in tried.iter().enumerate().filter(|(_, it)| it.share * 8 >= most * 7) {
        if best.is_none_or(|best: usize| it.cost + it.cost / 1000 * AS_GOOD < tried[best].cost) {
            best = Some(at);
        }
    }
    if let Some(best) = best {
        tried[..=best].rotate_right(1);
    }
    tried
}

/// How many requests of its lane later each request is over.
fn lives(record: &Record, lane: &[u32]) -> Vec<u32> {
    let lived = |(at, &number): (usize, &u32)| {
        let over = record.requests[number as usize].over;
        let until = lane.partition_point(|&it| record.requests[it as usize].begin < over);
        if over == NEVER { NEVER } else { (until - at) as u32 }
    };
    lane.iter().enumerate().map(lived).collect()
}

impl Tried {
    fn new(record: &Record, lane: &[u32], main: usize, steady: Steady) -> Self {
        let spans = Spans::of(record, &steady, &[main]);
        let begin = steady.begin();
        let since = lane.partition_point(|&it| record.requests[it as usize].begin < begin);
        let covered = spans.covered();
        let others = lane[since..].iter().copied();
        let others: Vec<u32> = others.filter(|it| covered.binary_search(it).is_err()).collect();
        Self {
            cost: spans.bound().saturating_add(peak(record, &others)),
            covered: covered.len(),
            share: covered.len() * 1000 / (covered.len() + others.len()).max(1),
            steady,
        }
    }
}
