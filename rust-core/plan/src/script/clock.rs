//! Moments of different iterations on one scale: where in an iteration something happens.
//!
//! The scale is the order of the regular requests of one lane, the clock. Each of them opens an interval;
//! within an interval, the requests of other lanes count. Where in its interval a request of another
//! lane falls may differ from iteration to iteration. Moments of one iteration keep their order on the
//! scale, so two requests that live at the same time in some iteration also do so on the scale.

use std::ops::Range;

use super::align::NONE;
use super::steady::{Iteration, Steady};
use crate::record::Record;

/// The scale for some lanes.
#[derive(Debug)]
pub(super) struct Clock<'s> {
    steady: &'s Steady,
    times: Vec<Times>,
    /// The length of an interval.
    interval: u64,
    intervals: u64,
}

/// Requests of one iteration.
#[derive(Debug)]
struct Times {
    /// When the clock's requests began, and the intervals that they open.
    clock: Vec<(u32, u32)>,
    /// When the other lanes' requests began, in order.
    others: Vec<u32>,
}

impl<'s> Clock<'s> {
    /// A scale on which `lanes` are told apart; the first is the clock.
    pub(super) fn new(record: &Record, steady: &'s Steady, lanes: &[usize]) -> Self {
        let begin = |&number: &u32| record.requests[number as usize].begin;
        let known = |number: &&u32| **number != NONE;
        let times: Vec<Times> = (0..steady.alike.len())
            .map(|iteration| {
                let of = |lane: &usize| &steady.lanes[*lane].requests[iteration];
                let numbers = (1_u32..).zip(of(&lanes[0]));
                let clock = numbers.filter(|(_, number)| known(number));
                let others = lanes[1..].iter().flat_map(of).filter(known);
                let mut others: Vec<u32> = others.map(begin).collect();
                others.sort_unstable();
                Times { clock: clock.map(|(interval, it)| (begin(it), interval)).collect(), others }
            })
            .collect();
        let most = times.iter().zip(&steady.alike).map(|(times, it)| times.most(*it));
        Self {
            interval: most.max().unwrap_or(0) + 2,
            intervals: steady.lanes[lanes[0]].granules.len() as u64 + 1,
            times,
            steady,
        }
    }

    /// The length of an iteration.
    pub(super) fn iteration(&self) -> u64 {
        self.interval * self.intervals
    }

    /// When a request begins, from the begin of its iteration on.
    pub(super) fn begin(&self, iteration: usize, moment: u32) -> u64 {
        self.at(iteration, moment)
    }

    /// When a request is over, from the begin of the first iteration on: after all that begin before.
    /// What is over between iterations alike is over when the next one begins; none after the last one.
    pub(super) fn over(&self, moment: u32) -> Option<u64> {
        let alike = &self.steady.alike;
        let iteration = alike.partition_point(|it| it.begin <= moment).checked_sub(1)?;
        if moment < alike[iteration].end {
            return Some(iteration as u64 * self.iteration() + self.at(iteration, moment) + 1);
        }
        let next = iteration + 1;
        (next < alike.len()).then_some(next as u64 * self.iteration())
    }

    fn at(&self, iteration: usize, moment: u32) -> u64 {
        let (interval, rank) = self.times[iteration].at(self.steady.alike[iteration], moment);
        interval * self.interval + rank
    }
}

impl Times {
    /// The interval of a moment, and how many other requests began in it so far.
    fn at(&self, own: Iteration, moment: u32) -> (u64, u64) {
        let before = self.clock.partition_point(|it| it.0 <= moment);
        let (opened, interval) = before.checked_sub(1).map_or((own.begin, 0), |last| self.clock[last]);
        (u64::from(interval), self.others_in(opened..moment + 1))
    }

    fn others_in(&self, moments: Range<u32>) -> u64 {
        let until = |moment| self.others.partition_point(|it| *it < moment);
        (until(moments.end) - until(moments.start)) as u64
    }

    /// The most other requests in an interval.
    fn most(&self, own: Iteration) -> u64 {
        let opened = std::iter::once(own.begin).chain(self.clock.iter().map(|it| it.0));
        let closed = self.clock.iter().map(|it| it.0).chain([own.end]);
        let counts = opened.zip(closed).map(|(from, to)| self.others_in(from..to));
        counts.max().unwrap_or(0)
    }
}
