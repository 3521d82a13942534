//! What lived at the peak, which sizes there are, and what rounding up to powers of two costs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::recording::{Recording, Row};

/// If there are more sizes at the peak, they go by powers of two.
const MOST_ROWS: usize = 24;

/// Blocks of one thread that lived when most was live, of one size or about that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AtPeak {
    /// The smallest.
    pub from: u64,
    /// The largest.
    pub to: u64,
    /// Who asked.
    pub thread: u32,
    /// How many.
    pub blocks: u64,
    /// Their bytes together.
    pub total: u64,
    /// Of those, the ones that were freed and waited for a stream.
    pub waiting: u64,
}

/// Requests of sizes from one power of two to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// The greatest size of the class.
    pub up_to: u64,
    /// How many requests.
    pub requests: u64,
    /// How many different sizes.
    pub different: u64,
    /// Bytes at the peak.
    pub at_peak: u64,
    /// What rounding would add to that.
    pub rounding: u64,
    /// The median time from a request to its free, in microseconds; none where most are not freed.
    pub lifetime: Option<u64>,
}

/// A moment, and which step is the next then: much may happen in a microsecond.
pub(super) type When = (u64, usize);

/// When most was live, and how much that was. Freed memory that waits for a stream is live.
pub(super) fn peak(rows: &[Row]) -> (When, u64) {
    let (mut when, mut most) = ((0, 0), 0);
    live(rows, &mut |at, live| {
        if live > most {
            (when, most) = (at, live);
        }
    });
    (when, most)
}

/// Bytes of blocks from their request on until their memory could be used again, after each step that changes them.
pub(super) fn live(rows: &[Row], each: &mut dyn FnMut(When, u64)) {
    let begin = |it: &Row| ((it.from, it.step), i128::from(it.bytes));
    let end = |it: &Row| ((it.until, it.next), -i128::from(it.bytes));
    let (begins, ends) = (rows.iter().map(begin), rows.iter().map(end));
    let mut changes: Vec<_> = begins.chain(ends).filter(|it| it.0.0 < u64::MAX).collect();
    // Of a step's changes, what ends comes first.
    changes.sort_unstable();
    let mut sum = 0;
    for (when, bytes) in changes {
        sum += bytes;
        each(when, u64::try_from(sum).unwrap_or(0));
    }
}

/// The same from another moment on, as it stands after each moment when it changes.
pub(super) fn sum(rows: &[Row], begin: fn(&Row) -> u64, each: &mut dyn FnMut(u64, u64)) {
    let begins = rows.iter().map(|it| (begin(it), i128::from(it.bytes)));
    let ends = rows.iter().map(|it| (it.until, -i128::from(it.bytes)));
    let mut moments: Vec<_> = begins.chain(ends).filter(|it| it.0 < u64::MAX).collect();
    // What ends at a moment does so first, so a block of no duration makes the sum less for a while.
    moments.sort_unstable();
    let mut sum = 0;
    for same in moments.chunk_by(|one, other| one.0 == other.0) {
        sum += same.iter().map(|it| it.1).sum::<i128>();
        each(same[0].0, u64::try_from(sum).unwrap_or(0));
    }
}

/// Whether its memory was not free then.
pub(super) fn lives(row: &Row, when: When) -> bool {
    (row.from, row.step) <= when && when < (row.until, row.next)
}

/// What lived then, the largest sums first.
pub(super) fn at_peak(recording: &Recording, at: When) -> Vec<AtPeak> {
    let exact = groups(recording, at, |bytes| bytes);
    if exact.len() <= MOST_ROWS { exact } else { groups(recording, at, u64::next_power_of_two) }
}

fn groups(recording: &Recording, at: When, class: fn(u64) -> u64) -> Vec<AtPeak> {
    let mut groups: BTreeMap<(u64, u32), AtPeak> = BTreeMap::new();
    for row in recording.rows.iter().filter(|it| lives(it, at)) {
        let key = (class(row.bytes), row.thread);
        let group = groups.entry(key).or_insert(AtPeak {
            from: row.bytes,
            to: row.bytes,
            thread: row.thread,
            blocks: 0,
            total: 0,
            waiting: 0,
        });
        group.from = group.from.min(row.bytes);
        group.to = group.to.max(row.bytes);
        group.blocks += 1;
        group.total += row.bytes;
        group.waiting += u64::from(row.freed <= at.0) * row.bytes;
    }
    let mut groups: Vec<AtPeak> = groups.into_values().collect();
    groups.sort_by_key(|it| std::cmp::Reverse(it.total));
    groups
}

/// All requests by size.
pub(super) fn sizes(recording: &Recording, at: When) -> Vec<Sizes> {
    let mut classes: BTreeMap<u64, (Sizes, Vec<u64>, Vec<u64>)> = BTreeMap::new();
    for row in &recording.rows {
        let up_to = row.bytes.next_power_of_two();
        let (sizes, different, lifetimes) = classes.entry(up_to).or_default();
        sizes.up_to = up_to;
        sizes.requests += 1;
        if lives(row, at) {
            sizes.at_peak += row.bytes;
            sizes.rounding += up_to - row.bytes;
        }
        different.push(row.bytes);
        lifetimes.push(row.freed.saturating_sub(row.from));
    }
    let done = classes.into_values().map(|(mut sizes, mut different, mut lifetimes)| {
        different.sort_unstable();
        different.dedup();
        sizes.different = different.len() as u64;
        let middle = lifetimes.len() / 2;
        let median = *lifetimes.select_nth_unstable(middle).1;
        sizes.lifetime = (median < u64::MAX / 2).then_some(median);
        sizes
    });
    done.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::recording::{self, row};

    #[test]
    fn what_waits_for_a_stream_counts_and_what_ends_as_it_begins_does_not_stay() {
        let never = u64::MAX;
        let rows = [(5, 0, 4, 9), (3, 2, never, never), (7, 3, 3, 3), (4, 9, 9, 10)];
        let rows = rows.map(|(bytes, from, freed, until)| row(bytes, from, freed, until));
        assert_eq!(peak(&rows), ((2, 0), 8));
        let mut sums = Vec::new();
        sum(&rows, |it| it.freed, &mut |at, sum| sums.push((at, sum)));
        assert_eq!(sums, [(3, 0), (4, 5), (9, 4), (10, 0)]);
        // Within a moment the order of the file counts: 64 bytes that were freed in the microsecond in which they were asked for, and as
        // many after them.
        let one = |step, next| Row { step, next, ..row(64, 5, 5, 5) };
        let rows = [one(0, 1), one(2, 3)];
        assert_eq!(peak(&rows), ((5, 0), 64));
        assert!(lives(&rows[0], (5, 0)) && !lives(&rows[0], (5, 1)));
        assert_eq!(peak(&[one(0, 3), one(1, 3)]), ((5, 1), 128));
    }

    #[test]
    fn many_sizes_go_by_powers_of_two() {
        let mut recording = recording::empty();
        recording.rows = (0..24).map(|it| row(1000 + it, 0, 5, 5)).collect();
        assert_eq!(at_peak(&recording, (1, 0)).len(), 24);
        recording.rows.push(row(1025, 0, 0, 5));
        let two = at_peak(&recording, (1, 0));
        assert_eq!((two[0].from, two[0].to, two[0].blocks), (1000, 1023, 24));
        assert_eq!([two[1].from, two[1].total, two[1].waiting], [1025; 3]);
        let sizes = sizes(&recording, (1, 0));
        let first = [sizes[0].requests, sizes[0].different, sizes[0].rounding];
        assert_eq!(first, [24, 24, 24 * 24 - 276]);
        assert_eq!((sizes[1].up_to, sizes[1].lifetime), (2048, Some(0)));
    }
}
