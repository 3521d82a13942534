//! Where a program is between two iterations: steps before which as little is in use as at any time later.
//!
//! A period may hold several iterations that differ, such as the batches of an epoch, and the next run may do them in another order.
//! It finds its place again where it rests ([`pinbuddy_slots`]).

use super::clears::live_before;
use super::spans::Spans;
use crate::record::Record;

/// As much may be in use beyond the least: one part in so many of the most.
const SLACK: u64 = 256;

/// The steps of a lane, of its prologue (the requests `early`) and then of its period, and what is in use before each.
pub(super) fn of(
    record: &Record,
    spans: &Spans<'_>,
    lane: usize,
    early: &[u32],
) -> Vec<(u32, u64)> {
    let live = live_before(record);
    let slack = live.iter().max().map_or(0, |it| it / SLACK);
    let positions = spans.of_lane(lane);
    let latest = |span| {
        let mut numbers = (0..spans.iterations())
            .rev()
            .map(|it| spans.request(span, it));
        numbers.find_map(|number| Some(live[number? as usize]))
    };
    let iteration: Vec<Option<u64>> = positions.iter().map(latest).collect();
    let Some(least) = iteration.iter().flatten().min().copied() else {
        return Vec::new();
    };
    let again = (0..spans.turns).flat_map(|_| &iteration);
    let again = (early.len()..).zip(again);
    let rests_again = again.filter_map(|(step, live)| Some((step as u32, (*live)?)));
    let rests_again = rests_again.filter(|it| it.1 <= least + slack);
    let mut later = least;
    let mut once = Vec::new();
    for (step, &number) in early.iter().enumerate().rev() {
        let before = live[number as usize];
        later = later.min(before);
        once.extend((before <= later + slack).then_some((step as u32, before)));
    }
    once.into_iter().rev().chain(rests_again).collect()
}
