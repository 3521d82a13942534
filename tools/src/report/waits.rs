//! Where the run that was recorded waited for the driver, and for how long.
//!
//! Knows no model: when those would have waited is in `observe`. Bounded: of many waits, the longest are told one by one.

use serde::Serialize;

use super::curve::differences;
use super::recording::{Recording, Row};
use crate::waited::Waited;

/// The most waits that a page shows.
const MOST: usize = 20_000;

/// A wait of one thread. Times are in microseconds, as those of [`Row`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// When it began.
    pub(super) from: u64,
    pub(super) took: u64,
    pub(super) thread: u32,
    /// Which row's request waited; none if memory was given back.
    pub(super) row: Option<usize>,
}

/// What a report says of them.
#[derive(Debug, Serialize)]
pub struct Waits {
    /// All of them.
    #[serde(flatten)]
    pub all: Waited,
    /// Those that began after the first iteration; none where no iterations are marked.
    pub later: Option<Waited>,
    /// When each began, as the difference to the one before. If there are too many, the longest are here.
    pub from: Vec<i64>,
    /// How long it took.
    pub took: Vec<u64>,
    /// The bytes that its request asked for; 0 where memory was given back.
    pub bytes: Vec<u64>,
    /// Who waited.
    pub thread: Vec<u32>,
}

/// All waits; none where the file does not say.
pub(super) fn all(recording: &Recording) -> Option<Waited> {
    let waits = recording.waits.as_ref()?;
    Some(sum(waits.iter()))
}

fn sum<'a>(waits: impl Iterator<Item = &'a Wait>) -> Waited {
    let mut sum = Waited::default();
    waits.for_each(|it| sum.add(it.took));
    sum
}

/// The same, one by one.
pub(super) fn waits(recording: &Recording) -> Option<Waits> {
    let waits = recording.waits.as_ref()?;
    let later = recording.iterations.first().map(|first| {
        let after = |it: &&Wait| it.from >= *first;
        sum(waits.iter().filter(after))
    });
    let mut shown = waits.clone();
    if shown.len() > MOST {
        shown.select_nth_unstable_by_key(MOST, |it| std::cmp::Reverse(it.took));
        shown.truncate(MOST);
    }
    shown.sort_by_key(|it| it.from);
    let row = |it: &Wait| it.row.map(|row| recording.rows[row]);
    Some(Waits {
        all: sum(waits.iter()),
        later,
        from: differences(shown.iter().map(|it| it.from)),
        took: shown.iter().map(|it| it.took).collect(),
        bytes: shown.iter().map(|it| row(it).map_or(0, |it: Row| it.bytes)).collect(),
        thread: shown.iter().map(|it| it.thread).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::recording;

    #[test]
    fn of_too_many_the_longest_are_shown_and_all_count() {
        let mut recording = recording::empty();
        assert!(waits(&recording).is_none(), "the file does not say");
        recording.waits = Some(Vec::new());
        assert_eq!(waits(&recording).unwrap().all, Waited::default());
        let wait = |at: u64| Wait { from: at, took: at % 7, thread: 1, row: None };
        let many = 7 * MOST as u64;
        recording.waits = Some((0..many).rev().map(wait).collect());
        recording.iterations = vec![many - 7, many];
        let waits = waits(&recording).unwrap();
        let (count, total) = (many, many / 7 * 21);
        assert_eq!(waits.all, Waited { count, total });
        let (count, total) = (7, 21);
        assert_eq!(waits.later, Some(Waited { count, total }));
        assert_eq!(waits.took, [6].repeat(MOST));
        assert_eq!((waits.from[0], waits.from[1]), (6, 7));
    }
}
