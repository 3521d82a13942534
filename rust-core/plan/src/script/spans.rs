//! Lifetimes of regular requests: from the earliest begin to the latest end in any iteration.

use super::align::NONE;
use super::clock::Clock;
use super::steady::Steady;
use crate::record::{NEVER, Record};
use crate::{Block, Instance};

/// The most iterations that a request may live for; what lives longer is irregular.
pub(super) const MOST_ITERATIONS: u64 = 8;

/// A regular request's lifetime, on a clock's scale.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) lane: usize,
    /// Among the lane's regular requests.
    pub(super) position: usize,
    /// Within the first iteration.
    pub(super) lower: u64,
    pub(super) upper: u64,
    pub(super) bytes: u64,
}

/// Lifetimes of the requests of some lanes, and how many iterations the longest takes.
#[derive(Debug)]
pub(super) struct Spans<'s> {
    pub(super) spans: Vec<Span>,
    pub(super) clock: Clock<'s>,
    steady: &'s Steady,
    /// After so many iterations a slot may be used again: as many as the longest takes, or more.
    pub(super) turns: u64,
}

impl<'s> Spans<'s> {
    /// Those of `lanes`; the first is the clock.
    pub(super) fn of(record: &Record, steady: &'s Steady, lanes: &[usize]) -> Self {
        let clock = Clock::new(record, steady, lanes);
        let iteration = clock.iteration();
        let mut spans = Vec::new();
        for &lane in lanes {
            let positions = &steady.lanes[lane];
            for (position, &granules) in positions.granules.iter().enumerate() {
                let lived = positions
                    .requests
                    .iter()
                    .enumerate()
                    .filter_map(|(at, numbers)| lived(record, &clock, at, numbers[position]));
                let both = lived.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
                if let Some((lower, upper)) = both
                    && upper - lower <= MOST_ITERATIONS * iteration
                {
                    let bytes = u64::from(granules) * crate::file::GRANULE;
                    spans.push(Span {
                        lane,
                        position,
                        lower,
                        upper,
                        bytes,
                    });
                }
            }
        }
        let longest = spans
            .iter()
            .map(|it| it.upper - it.lower)
            .max()
            .unwrap_or(0);
        Self {
            spans,
            clock,
            steady,
            turns: longest.div_ceil(iteration).max(1),
        }
    }

    /// The length of so many iterations.
    pub(super) fn period(&self, turns: u64) -> u64 {
        self.clock.iteration() * turns
    }

    /// Whether something lives on when an iteration ends.
    pub(super) fn cross(&self) -> bool {
        let iteration = self.clock.iteration();
        self.spans.iter().any(|it| it.upper > iteration)
    }

    /// The numbers of all requests that have a lifetime here, in order.
    pub(super) fn covered(&self) -> Vec<u32> {
        let mut covered: Vec<u32> = self
            .spans
            .iter()
            .flat_map(|it| self.steady.of(it.lane, it.position))
            .collect();
        covered.sort_unstable();
        covered
    }

    /// All as blocks, turn by turn.
    pub(super) fn blocks(&self, turns: u64) -> Vec<Block> {
        let turns = (0..turns).flat_map(|turn| {
            let later = turn * self.clock.iteration();
            self.spans.iter().map(move |span| Block {
                lower: span.lower + later,
                upper: span.upper + later,
                size: span.bytes,
            })
        });
        turns.collect()
    }

    /// The most bytes that live at once.
    pub(super) fn bound(&self) -> u64 {
        Instance::cyclic(self.blocks(self.turns), self.period(self.turns))
            .map_or(u64::MAX, |it| it.lower_bound())
    }
}

/// When a request lives, from the begin of its own iteration on, if its end is known.
fn lived(record: &Record, clock: &Clock<'_>, iteration: usize, number: u32) -> Option<(u64, u64)> {
    let request = (number != NONE).then(|| record.requests[number as usize])?;
    let over = (request.over != NEVER).then(|| clock.over(request.over))??;
    let own = iteration as u64 * clock.iteration();
    Some((clock.begin(iteration, request.begin), over - own))
}
