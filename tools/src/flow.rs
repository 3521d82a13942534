//! Events as other crates want them: as steps of a replay, and as requests with lifetimes, for plans.
//!
//! A lifetime ends where memory may be used again. Where the file does not say when streams were done, a stream copies
//! each block at the speed of a PCIe 5 link, as in replays.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use pinbuddy_plan::Event;
use pinbuddy_replay::streams::Streams;
use pinbuddy_trace::checked::{Act, Step};

use crate::input::{Item, What};

/// The step of a replay, if it is one.
pub(crate) fn step(item: &Item) -> Option<Step> {
    let act = match item.what {
        What::Request { block, bytes, .. } => Act::Alloc { block, bytes },
        What::Free { block, .. } | What::Safe { block, .. } => Act::Free { block: block? },
        What::Use { block, stream, .. } => Act::Use {
            block: block?,
            stream,
        },
        What::Clear => Act::Clear,
        What::Iteration => Act::Iter,
        What::Pin { .. } | What::Unpin { .. } | What::Wait { .. } | What::Lost { .. } => {
            return None;
        }
    };
    Some(Step { at: item.at, act })
}

/// Tells what a plan leaves to PyTorch's own lists: requests below a threshold, and those of private pools.
#[derive(Debug)]
pub(crate) struct Beside {
    threshold: u64,
    /// Blocks of private pools at or above it.
    private: HashSet<u64>,
}

impl Beside {
    pub(crate) fn new(threshold: u64) -> Self {
        Self {
            threshold,
            private: HashSet::new(),
        }
    }

    /// Whether the event is of such a request.
    pub(crate) fn has(&mut self, what: &What) -> bool {
        if what.bytes().is_some_and(|it| it < self.threshold) {
            return true;
        }
        match what {
            What::Request {
                id, private: true, ..
            } => self.private.insert(*id),
            What::Free {
                id, pending: false, ..
            }
            | What::Safe { id, .. } => self.private.remove(id),
            What::Free { id, .. } | What::Use { id, .. } => self.private.contains(id),
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
        Self {
            threshold,
            ..Self::default()
        }
    }

    /// Whether the event is of a request that stays, or of none.
    pub(crate) fn keeps(&self, what: &What) -> bool {
        what.bytes().is_none_or(|bytes| bytes >= self.threshold)
    }

    /// The events that an event comes to, in their order.
    pub(crate) fn push(&mut self, item: &Item, to: &mut dyn FnMut(Event)) {
        while let Some(Reverse((at, id))) = self.pending.peek().copied()
            && at <= item.at
        {
            self.pending.pop();
            to(Event::Over { id });
        }
        if !self.keeps(&item.what) {
            self.left_out += u64::from(matches!(item.what, What::Request { .. }));
            return;
        }
        match item.what {
            What::Request {
                id,
                bytes,
                thread,
                private: false,
                ..
            } => {
                // No more than there are threads.
                let lane = u32::try_from(self.lanes.len()).unwrap_or(u32::MAX);
                let lane = *self.lanes.entry(thread).or_insert(lane);
                to(Event::Request { id, bytes, lane });
            }
            What::Free {
                id, block, pending, ..
            } => {
                let done = block.and_then(|block| {
                    let until = self.streams.free(block);
                    until.iter().map(|it| it.1).max()
                });
                match done {
                    _ if pending => {}
                    Some(done) if done > item.at => self.pending.push(Reverse((done, id))),
                    _ => to(Event::Over { id }),
                }
            }
            // No engine serves it.
            What::Request { .. } => {}
            What::Safe { id, .. } => to(Event::Over { id }),
            What::Use {
                block,
                bytes,
                stream,
                ..
            } => {
                if let Some(block) = block {
                    self.streams.copy(item.at, block, bytes, stream);
                }
            }
            What::Clear => to(Event::Clear),
            What::Iteration => to(Event::Iteration),
            What::Pin { .. } | What::Unpin { .. } | What::Wait { .. } | What::Lost { .. } => {}
        }
    }

    /// What was freed and whose streams are done later.
    pub(crate) fn end(&mut self, to: &mut dyn FnMut(Event)) {
        while let Some(Reverse((_, id))) = self.pending.pop() {
            to(Event::Over { id });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_end_where_memory_may_be_used_again() {
        let request = |id, block, bytes, thread| What::Request {
            id,
            block,
            bytes,
            thread,
            private: false,
            stream: 0,
        };
        let free = |id, block, bytes, pending| What::Free {
            id,
            block: Some(block),
            bytes,
            pending,
        };
        let copy = |id, block, bytes| What::Use {
            id,
            block: Some(block),
            bytes,
            stream: 0,
        };
        let private = What::Request {
            id: 5,
            block: 3,
            bytes: 70,
            thread: 9,
            private: true,
            stream: 0,
        };
        let whats = [
            (0, request(0, 0, 100_000, 70)),
            (0, request(1, 1, 10, 9)),
            (0, request(2, 2, 9, 8)),
            (1, copy(0, 0, 100_000)),
            (1, copy(2, 2, 9)),
            (1, free(0, 0, 100_000, false)),
            (1, free(1, 1, 10, false)),
            (1, free(2, 2, 9, false)),
            // Two microseconds for the copy of the first.
            (2, request(3, 0, 50, 9)),
            (3, request(4, 1, 60, 70)),
            (3, private),
            (4, free(4, 1, 60, true)),
            (9, What::Iteration),
            (
                10,
                What::Safe {
                    id: 4,
                    block: None,
                    bytes: 60,
                },
            ),
        ];
        let (mut lifetimes, mut all) = (Lifetimes::new(10), Vec::new());
        for (line, (at, what)) in (1..).zip(whats) {
            lifetimes.push(&Item { line, at, what }, &mut |event| all.push(event));
        }
        lifetimes.end(&mut |event| all.push(event));
        let made = |id, bytes, lane| Event::Request { id, bytes, lane };
        let over = |id| Event::Over { id };
        assert_eq!(
            all,
            [
                made(0, 100_000, 0),
                made(1, 10, 1),
                over(1),
                made(3, 50, 1),
                over(0),
                made(4, 60, 0),
                Event::Iteration,
                over(4),
            ]
        );
        assert_eq!(lifetimes.left_out, 1);
    }
}
