//! Lifetimes of regular requests: from the earliest begin to the latest end in any iteration.

use std::ops::Range;

use super::align::NONE;
use super::clock::Clock;
use super::steady::Steady;
use crate::file::GRANULE;
use crate::record::{NEVER, Record, Request};
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
    /// The bytes that the place of each takes: its own, or more.
    pub(super) room: Vec<u64>,
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
                    let bytes = u64::from(granules) * GRANULE;
                    spans.push(Span { lane, position, lower, upper, bytes });
                }
            }
        }
        let longest = spans.iter().map(|it| it.upper - it.lower).max().unwrap_or(0);
        Self {
            room: spans.iter().map(|it| it.bytes).collect(),
            spans,
            clock,
            steady,
            turns: longest.div_ceil(iteration).max(1),
        }
    }

    /// The period after which all comes again.
    pub(super) fn period(&self) -> u64 {
        self.clock.iteration() * self.turns
    }

    /// Whether something lives on when an iteration ends.
    pub(super) fn cross(&self) -> bool {
        let iteration = self.clock.iteration();
        self.spans.iter().any(|it| it.upper > iteration)
    }

    /// The numbers of all requests that have a lifetime here, in order.
    pub(super) fn covered(&self) -> Vec<u32> {
        let mut covered: Vec<u32> = self.spans.iter().flat_map(|it| self.requests(it)).collect();
        covered.sort_unstable();
        covered
    }

    /// The first moment of the iterations alike, and the first after them.
    pub(super) fn first_begin(&self) -> u32 {
        self.steady.begin()
    }

    pub(super) fn end(&self) -> u32 {
        self.steady.end()
    }

    /// The length of an iteration.
    pub(super) fn iteration(&self) -> u64 {
        self.clock.iteration()
    }

    /// Which of the iterations alike a moment lies in.
    pub(super) fn iteration_at(&self, moment: u32) -> Option<usize> {
        let alike = &self.steady.alike;
        let begun = alike.partition_point(|it| it.begin <= moment);
        let own = begun.checked_sub(1)?;
        (moment < alike[own].end).then_some(own)
    }

    /// How many iterations are alike.
    pub(super) fn iterations(&self) -> usize {
        self.steady.alike.len()
    }

    /// Whether no iteration alike comes behind this one.
    pub(super) fn is_last(&self, iteration: usize) -> bool {
        iteration + 1 >= self.iterations()
    }

    /// Those of a lane, in its order.
    pub(super) fn of_lane(&self, lane: usize) -> Vec<Span> {
        let own = self.spans.iter().filter(|it| it.lane == lane);
        own.copied().collect()
    }

    /// The requests with this lifetime, one of each iteration that has it.
    pub(super) fn requests(&self, span: &Span) -> impl Iterator<Item = u32> {
        self.steady.of(span.lane, span.position)
    }

    /// The one of an iteration.
    pub(super) fn request(&self, span: &Span, iteration: usize) -> Option<u32> {
        let number = self.steady.lanes[span.lane].requests[iteration][span.position];
        (number != NONE).then_some(number)
    }

    /// Of all blocks, the bytes that their requests ask for.
    pub(super) fn sizes(&self) -> impl Iterator<Item = u64> {
        self.spans.iter().map(|it| it.bytes).cycle()
    }

    /// How many blocks there are.
    pub(super) fn len(&self) -> usize {
        self.spans.len() * self.turns as usize
    }

    /// All as blocks, turn by turn.
    pub(super) fn blocks(&self) -> Vec<Block> {
        let turns = (0..self.turns).flat_map(|turn| {
            let later = turn * self.clock.iteration();
            let spans = self.spans.iter().zip(&self.room);
            spans.map(move |(span, &size)| Block { lower: span.lower + later, upper: span.upper + later, size })
        });
        turns.collect()
    }

    /// All as an instance; none if they have more bytes than any machine has.
    pub(super) fn instance(&self) -> Option<Instance> {
        Instance::cyclic(self.blocks(), 0..self.period()).ok()
    }

    /// When the blocks come again, on a line of time that begins with the record.
    pub(super) fn line(&self) -> Range<u64> {
        let begin = u64::from(self.first_begin());
        begin..begin + self.period()
    }

    /// Whether a request from before the iterations lives on through one.
    pub(super) fn keeps(&self, early: &Request) -> bool {
        early.over == NEVER
            || match self.clock.over(early.over) {
                Some(over) => over > self.iteration(),
                None => early.over > self.first_begin(),
            }
    }

    /// A request from before the iterations, on the line of time. One that is kept has its bytes for good.
    pub(super) fn early(&self, request: &Request) -> Block {
        let line = self.line();
        let upper = match self.clock.over(request.over) {
            _ if self.keeps(request) => line.end + self.period(),
            Some(over) => line.start + over,
            None => u64::from(request.over),
        };
        Block { lower: u64::from(request.begin), upper, size: request.bytes() }
    }

    /// The same, if it may be over only at this moment, and is before the iterations.
    pub(super) fn late(&self, request: &Request, over: Option<u32>) -> Block {
        let over = over.map_or(request.over, |it| request.over.max(it));
        let late = Request { over, ..*request };
        self.early(if self.keeps(&late) { request } else { &late })
    }

    /// Those that come again, on the line of time.
    pub(super) fn again(&self) -> impl Iterator<Item = Block> {
        let begin = self.line().start;
        self.blocks().into_iter().map(move |it| Block { lower: begin + it.lower, upper: begin + it.upper, ..it })
    }

    /// Gives each request the longest one's room, or a half of it, or a quarter and so on.
    pub(super) fn make_room(&mut self) {
        let longest = self.spans.iter().map(|it| it.bytes).max().unwrap_or(0);
        let room = |span: &Span| {
            let parts = 1 << (longest / span.bytes).ilog2();
            (longest / parts).next_multiple_of(GRANULE).max(span.bytes)
        };
        self.room = self.spans.iter().map(room).collect();
    }

    /// The most bytes that live at once.
    pub(super) fn bound(&self) -> u64 {
        self.instance().map_or(u64::MAX, |it| it.lower_bound())
    }
}

/// When a request lives, from the begin of its own iteration on, if its end is known.
fn lived(record: &Record, clock: &Clock<'_>, iteration: usize, number: u32) -> Option<(u64, u64)> {
    let request = (number != NONE).then(|| record.requests[number as usize])?;
    let over = (request.over != NEVER).then(|| clock.over(request.over))??;
    let own = iteration as u64 * clock.iteration();
    Some((clock.begin(iteration, request.begin), over - own))
}
