//! Events as requests with lifetimes, for plans.
//!
//! A lifetime ends where memory may be used again. Where the file does not say when streams were done, a stream copies
//! each block at the speed of a PCIe 5 link, as in replays.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use pinbuddy_replay::streams::Streams;

use pinbuddy_events::{Item, Op};

/// Tells what a plan leaves to PyTorch's own lists: requests below a threshold, and those of private pools.
#[derive(Debug)]
pub(crate) struct Beside {
    threshold: u64,
    /// Blocks of private pools at or above it.
    private: HashSet<u64>,
}

impl Beside {
    pub(crate) fn new(threshold: u64) -> Self {
        Self { threshold, private: HashSet::new() }
    }

    /// Whether the event is of such a request.
    pub(crate) fn has(&mut self, item: &Item) -> bool {
        if item.event.op.id().is_some() && item.bytes < self.threshold {
            return true;
        }
        match &item.event.op {
            Op::Request { id, private: true, .. } => self.private.insert(*id),
            Op::Free { id, pending: false, .. } | Op::Safe { id, .. } => self.private.remove(id),
            Op::Free { id, .. } | Op::Use { id, .. } => self.private.contains(id),
            _ => false,
        }
    }
}

/// Turns events into requests and their ends, and leaves out requests below a threshold.
#[derive(Debug, Default)]
pub(crate) struct Lifetimes {
    threshold: u64,
    /// How many requests were left out.
    pub(crate) left_out: u64,
    streams: Streams,
    /// Freed, and when their streams are done.
    pending: BinaryHeap<Reverse<(u64, u64)>>,
    lanes: HashMap<u32, u32>,
}

impl Lifetimes {
    pub(crate) fn new(threshold: u64) -> Self {
        Self { threshold, ..Self::default() }
    }

    /// Whether the event is of a request that stays, or of none.
    fn keeps(&self, item: &Item) -> bool {
        item.event.op.id().is_none() || item.bytes >= self.threshold
    }

    /// The events that an event comes to, in their order.
    pub(crate) fn push(&mut self, item: &Item, to: &mut dyn FnMut(Op)) {
        while let Some(Reverse((at, id))) = self.pending.peek().copied()
            && at <= item.at()
        {
            self.pending.pop();
            to(Op::Safe { id });
        }
        if !self.keeps(item) {
            self.left_out += u64::from(matches!(item.event.op, Op::Request { .. }));
            return;
        }
        match item.event.op {
            Op::Request { id, bytes, thread, private: false, .. } => {
                // No more than there are threads.
                let lane = u32::try_from(self.lanes.len()).unwrap_or(u32::MAX);
                let lane = *self.lanes.entry(thread).or_insert(lane);
                to(Op::request(id, bytes).on_thread(lane));
            }
            Op::Free { id, pending, .. } => {
                let done = item.block.and_then(|block| {
                    let until = self.streams.free(block);
                    until.iter().map(|it| it.1).max()
                });
                match done {
                    _ if pending => {}
                    Some(done) if done > item.at() => self.pending.push(Reverse((done, id))),
                    _ => to(Op::Safe { id }),
                }
            }
            // No engine serves it.
            Op::Request { .. } => {}
            Op::Use { stream, .. } => {
                if let Some(block) = item.block {
                    self.streams.copy(item.at(), block, item.bytes, stream);
                }
            }
            Op::Safe { .. } | Op::Clear | Op::Iteration => to(item.event.op),
            Op::SegmentAlloc { .. } | Op::SegmentFree { .. } | Op::Node { .. } | Op::Wait { .. } | Op::Lost { .. } => {}
        }
    }

    /// What was freed and whose streams are done later.
    pub(crate) fn end(&mut self, to: &mut dyn FnMut(Op)) {
        while let Some(Reverse((_, id))) = self.pending.pop() {
            to(Op::Safe { id });
        }
    }
}

#[cfg(test)]
mod tests {
    use pinbuddy_events::{Event, MICROSECOND};

    use super::*;

    #[test]
    fn lifetimes_end_where_memory_may_be_used_again() {
        let request = |id, bytes, thread, private| Op::Request { id, bytes, thread, stream: 0, private };
        let copy = |id| Op::Use { id, stream: 0 };
        let (id, thread, pending) = (4, 0, true);
        let freed_pending = Op::Free { id, thread, pending };
        // When, what, the block's number and bytes.
        let events = [
            (0, request(0, 100_000, 70, false), 0, 100_000),
            (0, request(1, 10, 9, false), 1, 10),
            (0, request(2, 9, 8, false), 2, 9),
            (1, copy(0), 0, 100_000),
            (1, copy(2), 2, 9),
            (1, Op::free(0), 0, 100_000),
            (1, Op::free(1), 1, 10),
            (1, Op::free(2), 2, 9),
            // Two microseconds for the copy of the first.
            (2, request(3, 50, 9, false), 0, 50),
            (3, request(4, 60, 70, false), 1, 60),
            (3, request(5, 70, 9, true), 3, 70),
            (4, freed_pending, 1, 60),
            (9, Op::Iteration, 0, 0),
            (10, Op::Safe { id: 4 }, 1, 60),
        ];
        let (mut lifetimes, mut all) = (Lifetimes::new(10), Vec::new());
        for (line, (at, op, block, bytes)) in (1..).zip(events) {
            let item = Item { line, event: Event::host(at * MICROSECOND, op), block: Some(block), bytes };
            lifetimes.push(&item, &mut |event| all.push(event));
        }
        lifetimes.end(&mut |event| all.push(event));
        let made = |id, bytes, lane| Op::request(id, bytes).on_thread(lane);
        let over = |id| Op::Safe { id };
        let (first, second) = ([made(0, 100_000, 0), made(1, 10, 1)], [over(1), made(3, 50, 1)]);
        let rest = [over(0), made(4, 60, 0), Op::Iteration, over(4)];
        assert_eq!(all, [&first[..], &second, &rest].concat());
        assert_eq!(lifetimes.left_out, 1);
    }
}
