//! Freed blocks that streams may still be reading or writing: which event is asked next.
//!
//! There is one queue per stream, since a stream's events complete in order: a stuck stream delays only its own blocks. Queues
//! take turns: a request asks the oldest event of the first queue, and a queue whose event is not complete moves to the end,
//! so that a few questions a request reach all queues. A queue that stays empty is removed, since streams come and go. Knows
//! neither events nor blocks: both are C++'s (`cpp/pending_blocks.h`), which asks CUDA. Invariants: one thread at a time asks
//! for a queue's oldest event, so blocks of a stream leave in their order; a queue stays while its event is asked.

use std::collections::VecDeque;
use std::mem;
#[cfg(feature = "torch")]
use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::lock::Lock;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct PendingQueues(Lock<Queues>);

#[derive(Debug, Default)]
struct Queues {
    by_stream: FxHashMap<u64, Queue>,
    /// Each stream once, in the order of their turns.
    turns: VecDeque<u64>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Events, and the blocks that wait for them.
    waiters: VecDeque<(usize, usize)>,
    /// Something was pushed since it was last found empty.
    was_pushed: bool,
    /// A thread asks for its oldest event.
    is_asked: bool,
}

/// This process's.
#[cfg(feature = "torch")]
pub(crate) fn engine_pending() -> &'static PendingQueues {
    static ALL: LazyLock<PendingQueues> = LazyLock::new(PendingQueues::default);
    &ALL
}

impl PendingQueues {
    /// Has a block wait for one more event, which was recorded on this stream.
    pub fn push(&self, stream: u64, event: usize, block: usize) {
        let mut queues = self.0.lock();
        let Queues { by_stream, turns } = &mut *queues;
        let queue = by_stream.entry(stream).or_insert_with(|| {
            turns.push_back(stream);
            Queue::default()
        });
        queue.waiters.push_back((event, block));
        queue.was_pushed = true;
    }

    /// How many streams have a queue.
    pub fn streams(&self) -> usize {
        self.0.lock().turns.len()
    }

    /// Finds the first queue that has an event which nobody asks for, and writes its stream, its oldest event and the block.
    /// The caller asks for that event and calls [`Self::end`]. Subtracts the queues that were passed over from `left`; false
    /// once that is 0.
    pub fn begin(&self, left: &mut usize, stream: &mut u64, event: &mut usize, block: &mut usize) -> bool {
        let mut queues = self.0.lock();
        let Queues { by_stream, turns } = &mut *queues;
        while *left > 0
            && let Some(&first) = turns.front()
        {
            let queue = by_stream.entry(first).or_default();
            if !queue.is_asked
                && let Some(&oldest) = queue.waiters.front()
            {
                queue.is_asked = true;
                (*stream, (*event, *block)) = (first, oldest);
                return true;
            }
            if queue.is_asked || mem::take(&mut queue.was_pushed) {
                turns.rotate_left(1);
            } else {
                turns.pop_front();
                by_stream.remove(&first);
            }
            *left -= 1;
        }
        false
    }

    /// The oldest event of this stream was asked for. If it is over, the block does not wait for it any more; else the queue
    /// moves to the end.
    pub fn end(&self, stream: u64, over: bool) {
        let mut queues = self.0.lock();
        let Queues { by_stream, turns } = &mut *queues;
        let Some(queue) = by_stream.get_mut(&stream) else {
            return;
        };
        queue.is_asked = false;
        if over {
            queue.waiters.pop_front();
        } else if let Some(at) = turns.iter().position(|&it| it == stream) {
            turns.remove(at);
            turns.push_back(stream);
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    /// The next turn, of so many queues.
    fn next(all: &PendingQueues, mut left: usize) -> Option<(u64, usize, usize)> {
        let (mut stream, mut event, mut block) = (0, 0, 0);
        let any = all.begin(&mut left, &mut stream, &mut event, &mut block);
        any.then_some((stream, event, block))
    }

    #[test]
    fn queues_take_turns_and_each_is_asked_in_its_order() {
        let all = PendingQueues::default();
        for (stream, event) in [(7, 70), (8, 80), (7, 71)] {
            all.push(stream, event, event + 1000);
        }
        assert_eq!(all.streams(), 2);
        assert_eq!(next(&all, 2), Some((7, 70, 1070)));
        all.end(7, true);
        assert_eq!(next(&all, 2), Some((7, 71, 1071)), "it goes on with a queue whose event is over");
        all.end(7, false);
        assert_eq!(next(&all, 2), Some((8, 80, 1080)), "a stuck stream delays its own blocks alone");
        all.end(8, false);
        assert_eq!(next(&all, 2), Some((7, 71, 1071)));
        all.end(7, true);
        assert_eq!(next(&all, 2), Some((8, 80, 1080)));
        all.end(8, true);
        assert_eq!(next(&all, 2), None);
    }

    #[test]
    fn a_queue_that_is_asked_is_passed_over_and_stays() {
        let all = PendingQueues::default();
        all.push(7, 70, 1);
        assert_eq!(next(&all, 1), Some((7, 70, 1)));
        for _ in 0..3 {
            assert_eq!(next(&all, 1), None, "one thread at a time asks");
        }
        all.push(7, 71, 2);
        assert_eq!(next(&all, 9), None);
        all.end(7, true);
        assert_eq!(next(&all, 1), Some((7, 71, 2)));
    }

    #[test]
    fn a_queue_goes_when_it_is_found_empty_twice() {
        let all = PendingQueues::default();
        all.push(7, 70, 1);
        assert!(next(&all, 1).is_some());
        all.end(7, true);
        assert_eq!((next(&all, 1), all.streams()), (None, 1));
        assert_eq!((next(&all, 1), all.streams()), (None, 0));
        all.push(7, 71, 2);
        assert_eq!((all.streams(), next(&all, 0)), (1, None));
        assert_eq!(next(&all, 1), Some((7, 71, 2)));
    }
}
