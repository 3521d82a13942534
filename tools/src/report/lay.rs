//! Pinned memory as a snapshot recorded it: segments and blocks at the addresses that they had.
//!
//! Addresses of a process are far apart, so memory that lies together is a *range*, and ranges stand upon one another in the
//! order of their addresses, without the gaps between them. A history may begin in the middle of a program: a segment whose
//! end alone was recorded was there from the beginning, and blocks in no segment stand for the one that they were in.
//!
//! Invariant: what overlaps in the picture overlapped in memory.

mod pieces;

use std::collections::BTreeMap;

use pinbuddy_snapshot::{Action, Entry};
use serde::Serialize;

use super::map::{Map, Placed, Segment, made};
use super::recording::Recording;
use pieces::{Piece, Pieces, range_of, ranges};

/// The map, and the addresses of its heights.
#[derive(Clone, Debug, Serialize)]
pub struct Lay {
    /// Where segments and blocks were.
    pub map: Map,
    /// Where each range begins in the picture.
    height: Vec<u64>,
    /// Its address there, as text: more than a page's numbers hold.
    address: Vec<String>,
}

/// How memory lay, with the blocks of `shown`; `entries` are the history that was recorded.
pub(super) fn lay(entries: &[Entry], recording: &Recording, shown: &[usize]) -> Lay {
    let mut pieces = segments_of(entries, recording);
    // By the number of the request.
    let requests = entries.iter().filter(|it| it.is_request());
    let requests: Vec<u64> = requests.map(|it| it.address).collect();
    let blocks = recording.rows.iter().enumerate().map(|(number, row)| {
        let address = requests.get(number).copied()?;
        Some((address, address.checked_add(row.bytes)?))
    });
    let blocks: Vec<Option<(u64, u64)>> = blocks.collect();
    let known = ranges(pieces.iter().map(|it| (it.address, it.end)));
    let is_lost = |it: &&(u64, u64)| range_of(&known, it.0, it.1).is_none();
    let lost = ranges(blocks.iter().flatten().filter(is_lost).copied());
    let lost = lost.into_iter();
    pieces.extend(lost.map(|(address, end)| Piece::new(address, end, 0, recording.end)));

    let ranges = ranges(pieces.iter().map(|it| (it.address, it.end)));
    let mut top = 0_u64;
    let mut heights = BTreeMap::new();
    for (address, end) in &ranges {
        heights.insert(*address, top);
        top = top.saturating_add(end - address);
    }
    let height = |address, end| {
        let range = range_of(&ranges, address, end)?;
        Some(heights[&range] + (address - range))
    };
    let segment = |it: &Piece| {
        let height = height(it.address, it.end)?;
        Some(Segment::new(height, it.end - it.address, it.from, it.to))
    };
    let segments: Vec<Segment> = pieces.iter().filter_map(segment).collect();
    let placed = |(address, end): (u64, u64)| Some(Placed { height: height(address, end)?, bytes: end - address });
    let blocks: Vec<Option<Placed>> = blocks.iter().map(|it| it.and_then(placed)).collect();
    Lay {
        map: made(top, &segments, &blocks, recording, shown),
        height: heights.values().copied().collect(),
        address: heights.keys().map(|it| format!("{it:#x}")).collect(),
    }
}

/// Segments, as long as each was there.
fn segments_of(entries: &[Entry], recording: &Recording) -> Vec<Piece> {
    let mut pieces = Pieces::default();
    let (first, mut now) = (entries.first().map_or(0, |it| it.at), 0);
    for it in entries {
        now = it.at.saturating_sub(first).max(now);
        let at = now.saturating_sub(recording.begin).min(recording.end);
        match it.action {
            Action::SegmentAlloc => pieces.open(it.address, it.bytes, at),
            Action::SegmentFree => pieces.close(it.address, it.bytes, at),
            Action::Alloc | Action::FreeRequested | Action::FreeCompleted => {}
        }
    }
    pieces.end(recording.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::recording::{self, Row, empty};

    fn entry(action: Action, address: u64, bytes: u64, at: u64) -> Entry {
        Entry { address, bytes, at: 1000 + at, stream: 0, stack: None, private: false, action }
    }

    fn row(bytes: u64, from: u64) -> Row {
        recording::row(bytes, from, u64::MAX, u64::MAX)
    }

    /// Heights of blocks, from their columns.
    fn blocks(lay: &Lay) -> Vec<i64> {
        let json = serde_json::to_value(&lay.map).unwrap();
        let mut blocks: Vec<i64> = serde_json::from_value(json["blocks"].clone()).unwrap();
        (1..blocks.len()).for_each(|i| blocks[i] += blocks[i - 1]);
        blocks.into_iter().map(|it| it - 1).collect()
    }

    fn segments(lay: &Lay, column: &str) -> Vec<u64> {
        let json = serde_json::to_value(&lay.map).unwrap();
        serde_json::from_value(json["segments"][column].clone()).unwrap()
    }

    #[test]
    fn segments_and_blocks_lie_at_their_addresses_without_the_gaps() {
        let entries = [
            entry(Action::SegmentAlloc, 9000, 100, 0),
            entry(Action::Alloc, 9040, 20, 1),
            entry(Action::SegmentAlloc, 500, 50, 2),
            entry(Action::Alloc, 510, 8, 3),
            entry(Action::SegmentFree, 9000, 100, 5),
            // Where the other had been.
            entry(Action::SegmentAlloc, 9000, 30, 6),
            entry(Action::Alloc, 9000, 30, 6),
        ];
        let recording = Recording { rows: vec![row(20, 1), row(8, 3), row(30, 6)], end: 10, ..empty() };
        let lay = lay(&entries, &recording, &[0, 1, 2]);
        assert_eq!((lay.map.height, lay.map.elsewhere), (150, 0));
        assert_eq!(blocks(&lay), [90, 10, 50]);
        assert_eq!(segments(&lay, "height"), [50, 0, 50]);
        assert_eq!(segments(&lay, "from"), [0, 2, 6]);
        assert_eq!(segments(&lay, "to"), [5, 10, 10]);
        assert_eq!(lay.height, [0, 50]);
        assert_eq!(lay.address, ["0x1f4", "0x2328"]);
    }

    #[test]
    fn what_was_there_before_the_history_is_shown_as_far_as_it_is_known() {
        let entries = [
            entry(Action::Alloc, 100, 10, 0),
            entry(Action::Alloc, 110, 10, 1),
            entry(Action::Alloc, 700, 10, 2),
            entry(Action::SegmentFree, 690, 40, 4),
        ];
        let recording = Recording { rows: vec![row(10, 0), row(10, 1), row(10, 2)], end: 9, ..empty() };
        let lay = lay(&entries, &recording, &[0, 1, 2]);
        assert_eq!(segments(&lay, "bytes"), [40, 20]);
        assert_eq!(segments(&lay, "from"), [0, 0]);
        assert_eq!(segments(&lay, "to"), [4, 9]);
        assert_eq!(blocks(&lay), [0, 10, 30]);
    }
}
