//! Few blocks: exact search within rising efforts, of all blocks and of those that are left after some were joined.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Best, Effort};
use crate::exact::{self, Outcome};
use crate::instance::Instance;
use crate::join::Joined;
use crate::order::rankings;
use crate::problem::Problem;
use crate::random::Random;

/// How far above the bound searches look, in eighths of the way to the best that is known.
const EIGHTHS: [u64; 5] = [0, 8, 4, 2, 1];

/// An instance as searches see it; or what is left of it after blocks were joined.
pub(super) struct View {
    problem: Problem,
    rankings: [Vec<u32>; 4],
    joined: Option<Joined>,
    /// No placement of these is lower.
    bound: AtomicU64,
}

/// All blocks; before them, where that is wanted, those that are left after joining, if they are so few that it is worth half the time.
pub(super) fn views(instance: &Instance, effort: Effort<'_>) -> Vec<View> {
    let joined = effort.joins.then(|| Joined::of(instance, effort.stop));
    let joined =
        joined.flatten().filter(|it| it.instance.blocks.len() <= instance.blocks.len() / 4 * 3).map(|it| View {
            bound: AtomicU64::new(it.instance.lower_bound()),
            problem: Problem::of(&it.instance),
            rankings: rankings(&it.instance),
            joined: Some(it),
        });
    let all = View {
        bound: AtomicU64::new(instance.lower_bound()),
        problem: Problem::of(instance),
        rankings: rankings(instance),
        joined: None,
    };
    joined.into_iter().chain([all]).collect()
}

/// Searches in turns, each round with more effort than the one before.
pub(super) struct Rounds<'r> {
    instance: &'r Instance,
    best: &'r Best,
    thread: usize,
    random: Random,
    effort: Effort<'r>,
}

impl<'r> Rounds<'r> {
    pub(super) fn run(instance: &'r Instance, views: &[View], best: &'r Best, thread: usize, effort: Effort<'r>) {
        let mut rounds = Rounds { instance, best, thread, random: Random::new(thread as u64), effort };
        let mut steps = 10_000;
        for round in 0.. {
            if rounds.stop() {
                return;
            }
            for view in views {
                rounds.exact(view, round, steps);
            }
            steps += steps / 2;
        }
    }

    fn stop(&self) -> bool {
        (self.effort.stop)() || self.best.reached()
    }

    /// Nothing of this can be better than what is known.
    fn done(&self, view: &View) -> bool {
        self.stop() || self.best.peak() <= view.bound.load(Ordering::Relaxed)
    }

    fn capacity(&self, view: &View, eighths: u64) -> u64 {
        let (bound, peak) = (view.bound.load(Ordering::Relaxed), self.best.peak());
        // Another thread may have reached the bound just now.
        bound + peak.saturating_sub(1 + bound) / 8 * eighths
    }

    fn offer(&self, view: &View, offsets: Vec<u64>, by: &'static str) {
        let offsets = match &view.joined {
            Some(joined) => joined.offsets(&offsets),
            None => offsets,
        };
        let blocks = self.instance.blocks.iter().zip(&offsets);
        let peak = blocks.map(|(block, offset)| block.size + offset).max();
        self.best.offer(peak.unwrap_or(0), &offsets, by, self.effort);
    }

    /// By one of the rankings.
    fn exact(&mut self, view: &View, round: usize, steps: u64) {
        for turn in 0..EIGHTHS.len() {
            if self.done(view) {
                return;
            }
            let mut ranks = view.rankings[round % view.rankings.len()].clone();
            if round >= view.rankings.len() || self.thread > 2 {
                shuffle(&mut ranks, &mut self.random);
            }
            let capacity = self.capacity(view, EIGHTHS[(turn + self.thread) % EIGHTHS.len()]);
            match exact::search(&view.problem, capacity, &ranks, steps, &|| self.done(view)) {
                Outcome::Found(offsets) => self.offer(view, offsets, "exact search"),
                Outcome::Impossible => {
                    view.bound.fetch_max(capacity + 1, Ordering::Relaxed);
                    // All blocks may have a lower placement than those that were joined.
                    if view.joined.is_none() {
                        self.best.bound.fetch_max(capacity + 1, Ordering::Relaxed);
                    }
                }
                Outcome::Unknown => {}
            }
        }
    }
}

/// Swaps a tenth of the ranks with near ones.
fn shuffle(ranks: &mut [u32], random: &mut Random) {
    if ranks.is_empty() {
        return;
    }
    for _ in 0..ranks.len() / 10 {
        let (one, other) = (random.below(ranks.len()), random.below(ranks.len()));
        ranks.swap(one, other);
    }
}
