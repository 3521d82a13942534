//! Which request of an iteration each request before them is like: a first iteration is much like all others.
//!
//! Knows no places: whether such a request may lie where the other does is found out where it is placed.

use super::spans::Spans;
use crate::cursor::Cursor;
use crate::record::Record;

/// Of each of the requests before the iterations that is not kept, which block of an iteration is like it.
pub(super) fn like(record: &Record, early: &[u32], spans: &Spans<'_>) -> Vec<Option<usize>> {
    let passes = |lane: usize| {
        let own = early.iter().map(|it| &record.requests[*it as usize]);
        own.filter(move |it| it.lane as usize == lane && !spans.keeps(it))
    };
    let lanes = 1 + spans.spans.iter().map(|it| it.lane).max().unwrap_or(0);
    let mut cursors: Vec<(Cursor, Vec<usize>)> = (0..lanes)
        .map(|lane| {
            let own = spans.spans.iter().enumerate();
            let own = own.filter(|(_, it)| it.lane == lane);
            let (numbers, sizes): (Vec<usize>, Vec<u64>) =
                own.map(|(at, it)| (at, it.bytes)).unzip();
            let length = sizes.len().max(1);
            let mut cursor = Cursor::new(sizes, 0, 1);
            // What comes before the iterations ends where they begin.
            cursor.start((length - passes(lane).count() % length) % length);
            (cursor, numbers)
        })
        .collect();
    let like = early.iter().map(|&number| {
        let request = &record.requests[number as usize];
        let (cursor, numbers) = cursors.get_mut(request.lane as usize)?;
        let is_passing = !spans.keeps(request);
        let at = is_passing.then(|| cursor.next(request.bytes()))??;
        Some(early.len() + numbers[at])
    });
    like.collect()
}
