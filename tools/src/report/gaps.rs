//! Fragmentation over time: how much of what is pinned is not live, and the largest free run, which is the largest request
//! that would fit in it.
//!
//! Works on a picture's heights, where what is there at the same time does not overlap. Knows no allocator. Invariants: a run
//! never crosses from one segment to the next; a block where memory is not free is left out, and nothing panics.

use std::collections::BTreeMap;

use serde::Serialize;

use super::curve::{COARSE, Curve};
use super::map::{Placed, Segment};
use super::recording::Row;

/// See the module's documentation.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Fragmentation {
    /// Bytes pinned and not live: free, or lost to rounding.
    idle: Curve,
    /// The largest free run.
    largest: Curve,
    /// Both when most was live.
    idle_at_peak: u64,
    /// See there.
    largest_at_peak: u64,
}

/// What happens at a moment. What ends does so first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    Free(usize),
    Unpin(usize),
    Pin(usize),
    Request(usize),
}

/// Of these segments and rows; each row has a place, or none.
pub(super) fn fragmentation(
    segments: &[Segment],
    rows: &[Row],
    placed: &[Option<Placed>],
    (peak_at, end): (u64, u64),
) -> Fragmentation {
    let moments = moments(segments, rows, placed, end);
    let mut runs = Runs::default();
    let mut served = vec![false; rows.len()];
    let (mut pinned, mut live) = (0_u64, 0_u64);
    let mut seen = Fragmentation {
        idle: Curve::new(COARSE * 4),
        largest: Curve::new(COARSE * 4),
        idle_at_peak: 0,
        largest_at_peak: 0,
    };
    for same in moments.chunk_by(|one, other| one.0 == other.0) {
        for (_, moment) in same {
            match *moment {
                Moment::Pin(number) => {
                    runs.pin(segments[number].height, segments[number].bytes);
                    pinned += segments[number].bytes;
                }
                Moment::Unpin(number) => {
                    runs.unpin(segments[number].height);
                    pinned -= segments[number].bytes;
                }
                Moment::Request(number) => {
                    served[number] = placed[number].is_some_and(|it| runs.take(it));
                    live += u64::from(served[number]) * rows[number].bytes;
                }
                Moment::Free(number) => {
                    if let Some(place) = placed[number].filter(|_| served[number]) {
                        runs.put(place);
                        live -= rows[number].bytes;
                    }
                }
            }
        }
        let (at, idle, largest) = (same[0].0, pinned.saturating_sub(live), runs.largest());
        seen.idle.push(at, idle);
        seen.largest.push(at, largest);
        if at <= peak_at {
            (seen.idle_at_peak, seen.largest_at_peak) = (idle, largest);
        }
    }
    seen
}

/// What happens until `end`, in order. What is there to the end is there at the end.
fn moments(segments: &[Segment], rows: &[Row], placed: &[Option<Placed>], end: u64) -> Vec<(u64, Moment)> {
    let mut moments = Vec::new();
    for (number, it) in segments.iter().enumerate().filter(|it| it.1.from < it.1.to) {
        moments.push((it.from, Moment::Pin(number)));
        moments.push((it.to, Moment::Unpin(number)));
    }
    for (number, row) in rows.iter().enumerate() {
        if placed.get(number).is_some_and(Option::is_some) && row.from < row.until {
            moments.push((row.from, Moment::Request(number)));
            moments.push((row.until, Moment::Free(number)));
        }
    }
    moments.retain(|it| it.0 < end || matches!(it.1, Moment::Pin(_) | Moment::Request(_)));
    moments.sort_unstable();
    moments
}

/// Free runs of all segments.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// Where a segment begins: where it ends.
    segments: BTreeMap<u64, u64>,
    /// The same of free runs.
    free: BTreeMap<u64, u64>,
    /// How many runs have each length.
    lengths: BTreeMap<u64, usize>,
}

impl Runs {
    pub(super) fn largest(&self) -> u64 {
        self.lengths.last_key_value().map_or(0, |it| *it.0)
    }

    /// Where the lowest of the first runs begins that is so long; else the last.
    pub(super) fn lowest(&self, bytes: u64, first: usize) -> u64 {
        let mut runs = self.free.iter().take(first);
        let fits = runs.find(|(from, to)| *to - *from >= bytes);
        fits.or(self.free.last_key_value()).map_or(0, |it| *it.0)
    }

    pub(super) fn pin(&mut self, from: u64, bytes: u64) {
        self.segments.insert(from, from.saturating_add(bytes));
        self.add(from, from.saturating_add(bytes));
    }

    fn unpin(&mut self, from: u64) {
        let Some(to) = self.segments.remove(&from) else {
            return;
        };
        let inside: Vec<u64> = self.free.range(from..to).map(|it| *it.0).collect();
        for run in inside {
            self.remove(run);
        }
    }

    /// Takes the place out of a free run; false if it is not free.
    pub(super) fn take(&mut self, it: Placed) -> bool {
        let (from, to) = (it.height, it.height.saturating_add(it.bytes));
        let Some((&begin, &end)) = self.free.range(..=from).next_back() else {
            return false;
        };
        if end < to {
            return false;
        }
        self.remove(begin);
        self.add(begin, from);
        self.add(to, end);
        true
    }

    /// Puts back what was taken, beside free neighbours of its segment. Its segment may have gone.
    pub(super) fn put(&mut self, it: Placed) {
        let (mut from, mut to) = (it.height, it.height.saturating_add(it.bytes));
        let Some((&first, &last)) = self.segments.range(..=from).next_back() else {
            return;
        };
        if last < to {
            return;
        }
        if let Some((&begin, &end)) = self.free.range(first..from).next_back()
            && end == from
        {
            self.remove(begin);
            from = begin;
        }
        if let Some(&end) = self.free.get(&to).filter(|_| to < last) {
            self.remove(to);
            to = end;
        }
        self.add(from, to);
    }

    fn add(&mut self, from: u64, to: u64) {
        if from < to {
            self.free.insert(from, to);
            *self.lengths.entry(to - from).or_default() += 1;
        }
    }

    fn remove(&mut self, from: u64) {
        let Some(to) = self.free.remove(&from) else {
            return;
        };
        if let Some(count) = self.lengths.get_mut(&(to - from)) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&(to - from));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::recording;

    fn row(bytes: u64, from: u64, until: u64) -> Row {
        recording::row(bytes, from, until, until)
    }

    fn at(height: u64, bytes: u64) -> Option<Placed> {
        Some(Placed { height, bytes })
    }

    #[test]
    fn runs_split_and_merge_and_end_with_their_segment() {
        let segments = [Segment::new(0, 100, 0, 50), Segment::new(100, 40, 10, 90)];
        let never = u64::MAX;
        let rows = [(30, 1, 20), (10, 2, never), (40, 12, 30), (7, 15, 15), (5, 16, 40)];
        let rows = rows.map(|(bytes, from, until)| row(bytes, from, until));
        // The third is rounded up: it takes 40 of 40. The last lies where the second does.
        let placed = [at(0, 30), at(60, 10), at(100, 40), at(0, 7), at(62, 5)];
        let seen = fragmentation(&segments, &rows, &placed, (12, 90));
        let points = |curve: &Curve| format!("{:?}", curve.points().collect::<Vec<_>>());
        // 100 free; 30 taken; 30..60 and 70..100; the other segment is free, and full; 0..60; the other segment.
        insta::assert_snapshot!(points(&seen.largest), @"[(0, 100), (1, 70), (2, 30), (10, 40), (12, 30), (20, 60), (50, 40)]");
        insta::assert_snapshot!(points(&seen.idle), @"[(0, 100), (1, 70), (2, 60), (10, 100), (12, 60), (20, 90), (30, 130), (50, 30)]");
        assert_eq!((seen.idle_at_peak, seen.largest_at_peak), (60, 30));
        // What rounding takes is idle and not free.
        let (segments, rows) = ([Segment::new(0, 8, 0, 9)], [row(5, 0, u64::MAX)]);
        let seen = fragmentation(&segments, &rows, &[at(0, 8)], (0, 9));
        assert_eq!((seen.idle_at_peak, seen.largest_at_peak), (3, 0));
    }
}
