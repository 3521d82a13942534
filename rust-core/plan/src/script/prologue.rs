//! Requests before the first iteration alike: what lives on and on, and what goes.
//!
//! What lives on through an iteration is *kept*: it has bytes of its own for good. All else is placed by
//! first fit, in the order of the requests, beside what lives then; what still lives when the
//! iterations begin, beside what begins before it is over. A first iteration is much like all others: so
//! a request goes where the same one goes in an iteration, if there is room.

use super::line::{Placed, Walls};
use super::spans::Spans;
use crate::cursor::Cursor;
use crate::record::{NEVER, Record, Request};

/// The most comparisons for requests that outlive the prologue: some seconds. What is beyond has no slot.
const MOST_COMPARISONS: usize = 2_000_000_000;

/// Bytes on the line: begin and end.
type Bytes = (u64, u64);

/// Whether a request of the prologue lives on through an iteration.
pub(super) fn is_kept(request: &Request, spans: &Spans<'_>) -> bool {
    request.over == NEVER
        || match spans.clock.over(request.over) {
            Some(over) => over > spans.clock.iteration(),
            None => request.over > spans.clock.first_begin(),
        }
}

/// Places `requests`, which are in order, from `base` on; the answer has an offset for each that is not
/// left out. `placed.end` moves on where there is no room. `kept`: when kept requests begin, and where
/// they end; they lie one behind the other from `base` on. Before they begin, their bytes are free.
pub(super) fn place(
    record: &Record,
    requests: &[u32],
    spans: &Spans<'_>,
    placed: &mut Placed,
    base: u64,
    kept: &[(u32, u64)],
) -> Vec<Option<u64>> {
    let mut end = placed.end;
    let walls = Walls::new(placed.wall);
    let mut fixed = Fixed::new(spans, placed);
    let mut again = Again::new(record, requests, spans, placed);
    // Sorted, and none overlaps another.
    let mut living: Vec<Bytes> = Vec::new();
    let mut ends = std::collections::BinaryHeap::new();
    let mut offsets = Vec::with_capacity(requests.len());
    for &number in requests {
        let request = &record.requests[number as usize];
        while let Some(&std::cmp::Reverse((over, offset))) = ends.peek()
            && over < request.begin
        {
            ends.pop();
            let at = living.partition_point(|it| it.0 < offset);
            living.remove(at);
        }
        let beside = fixed.until(request.over);
        let Some(beside) = beside else {
            offsets.push(None);
            continue;
        };
        let bytes = request.bytes();
        let begun = kept.partition_point(|it| it.0 < request.over);
        let from = begun.checked_sub(1).map_or(base, |last| kept[last].1);
        let free = |&at: &u64| is_free(&living, at, bytes) && is_free(&beside, at, bytes);
        let offset = again
            .next(request)
            .filter(free)
            .unwrap_or_else(|| first_gap(&living, &beside, from, bytes, &walls));
        let at = living.partition_point(|it| it.0 < offset);
        living.insert(at, (offset, offset + bytes));
        ends.push(std::cmp::Reverse((request.over, offset)));
        end = end.max(offset + bytes);
        offsets.push(Some(offset));
    }
    placed.end = end;
    offsets
}

/// Whether none of the sorted `taken` lies in these bytes. None of them overlaps another by much: those
/// of a group may, if they do not live at the same time.
fn is_free(taken: &[Bytes], at: u64, bytes: u64) -> bool {
    let before = taken.partition_point(|it| it.0 < at + bytes);
    taken[..before].iter().all(|it| it.1 <= at)
}

/// The lowest place from `from` on beside both, which are sorted by their begin.
fn first_gap(living: &[Bytes], beside: &[Bytes], from: u64, bytes: u64, walls: &Walls) -> u64 {
    let mut at = walls.beside(from, bytes);
    let (mut i, mut j) = (0, 0);
    loop {
        let next = match (living.get(i), beside.get(j)) {
            (Some(one), Some(other)) if one <= other => {
                i += 1;
                one
            }
            (Some(one), None) => {
                i += 1;
                one
            }
            (_, Some(other)) => {
                j += 1;
                other
            }
            (None, None) => return at,
        };
        if next.0 >= at + bytes {
            return at;
        }
        if next.1 > at {
            at = walls.beside(next.1, bytes);
        }
    }
}

/// Where requests of iterations go, lane by lane.
struct Again {
    lanes: Vec<(Cursor, Vec<u64>)>,
}

impl Again {
    /// The prologue ends where the iterations begin.
    fn new(record: &Record, requests: &[u32], spans: &Spans<'_>, placed: &Placed) -> Self {
        let mut lanes: Vec<Vec<(u64, u64)>> = Vec::new();
        for (span, &offset) in spans.spans.iter().cycle().zip(&placed.offsets) {
            if lanes.len() <= span.lane {
                lanes.resize_with(span.lane + 1, Vec::new);
            }
            lanes[span.lane].push((span.bytes, offset));
        }
        let mut lanes: Vec<(Cursor, Vec<u64>)> = lanes
            .into_iter()
            .map(|lane| {
                let (sizes, offsets) = lane.into_iter().unzip();
                (Cursor::new(sizes, 0, 1), offsets)
            })
            .collect();
        for (lane, (cursor, offsets)) in (0..).zip(&mut lanes) {
            let own = |&&it: &&u32| record.requests[it as usize].lane == lane;
            let count = requests.iter().filter(own).count();
            let length = offsets.len().max(1);
            cursor.start((length - count % length) % length);
        }
        Self { lanes }
    }

    fn next(&mut self, request: &Request) -> Option<u64> {
        let (cursor, offsets) = self.lanes.get_mut(request.lane as usize)?;
        cursor.next(request.bytes()).map(|at| offsets[at])
    }
}

/// What the iterations take, as far as it matters to the prologue.
struct Fixed<'g> {
    spans: &'g Spans<'g>,
    /// When each of the group's blocks begins, and its bytes: sorted by offset.
    sorted: Vec<(u64, Bytes)>,
    comparisons: usize,
}

impl<'g> Fixed<'g> {
    fn new(spans: &'g Spans<'g>, placed: &Placed) -> Self {
        let blocks = spans.blocks().into_iter().zip(&placed.offsets);
        let mut sorted: Vec<(u64, Bytes)> = blocks
            .map(|(block, &offset)| (block.lower, (offset, offset + block.size)))
            .collect();
        sorted.sort_unstable_by_key(|it| it.1);
        Self {
            spans,
            sorted,
            comparisons: 0,
        }
    }

    /// What begins before `moment`, sorted by offset; none if that would take too long.
    fn until(&mut self, moment: u32) -> Option<Vec<Bytes>> {
        let clock = &self.spans.clock;
        if moment < clock.first_begin() {
            return Some(Vec::new());
        }
        self.comparisons += self.sorted.len();
        let until = clock.over(moment).unwrap_or(u64::MAX);
        let begun = self.sorted.iter().filter(|it| it.0 < until);
        (self.comparisons <= MOST_COMPARISONS).then(|| begun.map(|it| it.1).collect())
    }
}
