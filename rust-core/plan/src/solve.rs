//! All ways to place blocks, side by side, until the bound is reached or the caller says stop.
//!
//! First every way of first fit, each once. Then, for few blocks, exact search within capacities between the bound and the best
//! that is known, each round with half as much effort again ([`rounds`]); for many, local search. Threads share
//! nothing but the best placement and what was shown to be impossible.

mod rounds;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::first_fit::Packer;
use crate::improve::Climb;
use crate::instance::Instance;
use crate::order::{WAYS, Way, ways};
use rounds::{Rounds, views};

/// Up to so many blocks are searched exactly.
const FEW: usize = 1_000;

/// What a search may take.
#[derive(Clone, Copy)]
pub struct Effort<'e> {
    /// How many threads; 0 is 1.
    pub threads: usize,
    /// Whether to stop now: asked every few milliseconds, by all threads. Until every way was tried
    /// once no way may be known, so the first one is gone through even then.
    pub stop: &'e (dyn Fn() -> bool + Sync),
    /// Called with each peak that is lower than all before.
    pub seen: &'e (dyn Fn(u64) + Sync),
    /// Whether blocks may be placed as one where some take over the bytes of others at one moment. In a program that runs again
    /// what is freed then may be late, and whoever takes over finds its place taken.
    pub joins: bool,
}

/// Where blocks are to lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// Of each block, in the order in which they were given.
    pub offsets: Vec<u64>,
    /// The highest end.
    pub peak: u64,
    /// No placement is lower than this: the most that lives at once, or what exact search showed.
    pub bound: u64,
    /// What found it: `first fit`, `local search` or `exact search`.
    pub by: &'static str,
}

/// The best placement so far, for all threads.
struct Best {
    peak: AtomicU64,
    bound: AtomicU64,
    found: Mutex<(Vec<u64>, &'static str)>,
}

impl Best {
    /// Nothing found so far; `bound` is as good as can be.
    fn new(bound: u64) -> Self {
        Self { peak: AtomicU64::new(u64::MAX), bound: AtomicU64::new(bound), found: Mutex::default() }
    }

    fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    fn bound(&self) -> u64 {
        self.bound.load(Ordering::Relaxed)
    }

    fn reached(&self) -> bool {
        self.peak() <= self.bound()
    }

    fn solution(self, bound: u64) -> Solution {
        let peak = self.peak();
        let (offsets, by) = self.found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        Solution { peak: if offsets.is_empty() { 0 } else { peak }, offsets, bound, by }
    }

    fn offer(&self, peak: u64, offsets: &[u64], by: &'static str, effort: Effort<'_>) {
        let mut found = self.found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if peak < self.peak() {
            self.peak.store(peak, Ordering::Relaxed);
            found.0.clear();
            found.0.extend_from_slice(offsets);
            found.1 = by;
            (effort.seen)(peak);
        }
    }
}

/// Places all blocks.
#[must_use]
pub fn solve(instance: &Instance, effort: Effort<'_>) -> Solution {
    let best = Best::new(instance.lower_bound());
    let ways = portfolio(instance, &best, effort);
    let few = instance.blocks.len() <= FEW;
    let views = if few && !best.reached() { views(instance, effort) } else { Vec::new() };
    side_by_side(effort.threads, |thread| {
        if few {
            Rounds::run(instance, &views, &best, thread, effort);
        } else {
            climb(instance, &best, ways[thread % ways.len()], thread, effort);
        }
    });
    let bound = best.bound();
    best.solution(bound)
}

/// Calls `work` with each number below `threads`, 0 in this thread and the others in one each, as far as the system starts them.
pub fn side_by_side(threads: usize, work: impl Fn(usize) + Sync) {
    let work = &work;
    std::thread::scope(|scope| {
        for thread in 1..threads {
            let started = std::thread::Builder::new().spawn_scoped(scope, move || work(thread));
            if started.is_err() {
                break;
            }
        }
        work(0);
    });
}

/// The best of the ways of first fit, or the first one that is no higher than `good`.
pub(crate) fn first_fit(instance: &Instance, good: u64, effort: Effort<'_>) -> Solution {
    let best = Best::new(good);
    portfolio(instance, &best, effort);
    best.solution(instance.lower_bound())
}

/// Places of the blocks that have none in `offsets` yet, around those that have, by first fit; all offsets.
pub(crate) fn around(instance: &Instance, offsets: &[Option<u64>], stop: &(dyn Fn() -> bool + Sync)) -> Vec<u64> {
    let known = || (0..).zip(offsets).filter_map(|(block, at)| Some((block, (*at)?)));
    let ends = known().map(|(block, at)| at + instance.blocks[block as usize].size);
    let good = ends.max().unwrap_or(0);
    let mut packer = Packer::new(instance);
    let (mut best, mut found) = (u64::MAX, Vec::new());
    for way in ways() {
        let mut order = way.order(instance);
        order.retain(|&it| offsets[it as usize].is_none());
        let has_any = best < u64::MAX;
        let stop = || has_any && stop();
        if let Some(peak) = packer.pack_around(known(), &order, way.gap, best, &stop) {
            best = peak;
            found = packer.offsets().to_vec();
        }
        if best <= good || stop() {
            break;
        }
    }
    found
}

/// Goes through all ways of first fit, until one reaches the bound; answers with them, the best first.
fn portfolio(instance: &Instance, best: &Best, effort: Effort<'_>) -> Vec<Way> {
    let unknown = || AtomicU64::new(u64::MAX);
    let mut all: Vec<(Way, AtomicU64)> = ways().map(|way| (way, unknown())).collect();
    let next = AtomicUsize::new(0);
    side_by_side(effort.threads.min(WAYS), |_| {
        first_fits(instance, best, &all, &next, effort);
    });
    all.sort_by_key(|(_, peak)| peak.load(Ordering::Relaxed));
    all.into_iter().map(|(way, _)| way).collect()
}

fn first_fits(instance: &Instance, best: &Best, ways: &[(Way, AtomicU64)], next: &AtomicUsize, effort: Effort<'_>) {
    let mut packer = Packer::new(instance);
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some((way, lowest)) = ways.get(index) else {
            return;
        };
        let first = index == 0;
        if !first && ((effort.stop)() || best.reached()) {
            return;
        }
        let order = way.order(instance);
        let go_on: &dyn Fn() -> bool = &|| false;
        let stop: &dyn Fn() -> bool = if first { go_on } else { &|| (effort.stop)() };
        if let Some(peak) = packer.pack(&order, way.gap, best.peak(), stop) {
            lowest.store(peak, Ordering::Relaxed);
            best.offer(peak, packer.offsets(), "first fit", effort);
        }
    }
}

fn climb(instance: &Instance, best: &Best, way: Way, seed: usize, effort: Effort<'_>) {
    let stop: &dyn Fn() -> bool = &|| (effort.stop)() || best.reached();
    if stop() {
        return;
    }
    let order = way.order(instance);
    let Some(mut climb) = Climb::new(instance, order, way.gap, seed as u64, stop) else {
        return;
    };
    while !stop() {
        if climb.step(stop) {
            best.offer(climb.peak(), climb.offsets(), "local search", effort);
        }
    }
}
