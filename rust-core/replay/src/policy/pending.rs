//! Freed blocks that streams still use.
//!
//! There is one event a stream; a block is free after its last one. Allocators differ in the order in
//! which they query events.

use std::collections::VecDeque;

use crate::streams::Until;

/// How events are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// In one queue for all streams, queried up to the first that is not complete, as in upstream's
    /// `process_events`.
    OneQueue,
    /// In one queue a stream.
    PerStream,
}

#[derive(Debug)]
struct Waiting<B> {
    block: Option<B>,
    events: u32,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Pending<B> {
    order: Order,
    /// Times, and indices into `waiting`.
    queues: Vec<VecDeque<(u64, u32)>>,
    waiting: Vec<Waiting<B>>,
    vacant: Vec<u32>,
}

impl<B> Pending<B> {
    pub(crate) fn new(order: Order) -> Self {
        Self { order, queues: Vec::new(), waiting: Vec::new(), vacant: Vec::new() }
    }

    /// The block is free once all of `until`, which is not empty, have passed.
    pub(crate) fn push(&mut self, block: B, until: &[Until]) {
        let entry = Waiting { block: Some(block), events: until.len() as u32 };
        let index = self.vacant.pop().unwrap_or(self.waiting.len() as u32);
        match self.waiting.get_mut(index as usize) {
            Some(waiting) => *waiting = entry,
            None => self.waiting.push(entry),
        }
        for &(stream, moment) in until {
            let queue = match self.order {
                Order::OneQueue => 0,
                Order::PerStream => stream as usize,
            };
            if self.queues.len() <= queue {
                self.queues.resize_with(queue + 1, VecDeque::new);
            }
            self.queues[queue].push_back((moment, index));
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.vacant.len() == self.waiting.len()
    }

    /// A block that is free by `at`, if there is any.
    pub(crate) fn pop(&mut self, at: u64) -> Option<B> {
        for queue in &mut self.queues {
            while let Some(&(_, index)) = queue.front().filter(|(moment, _)| *moment <= at) {
                queue.pop_front();
                let waiting = &mut self.waiting[index as usize];
                waiting.events -= 1;
                if waiting.events == 0 {
                    self.vacant.push(index);
                    return waiting.block.take();
                }
            }
        }
        None
    }

    /// The blocks that wait.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &B> {
        self.waiting.iter().filter_map(|it| it.block.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn popped(order: Order, at: u64) -> Vec<char> {
        let mut pending = Pending::new(order);
        pending.push('a', &[(0, 100)]);
        pending.push('b', &[(1, 10)]);
        pending.push('c', &[(1, 20), (2, 30)]);
        let blocks = std::iter::from_fn(|| pending.pop(at)).collect();
        assert_eq!(pending.is_empty(), at >= 100);
        blocks
    }

    #[test]
    fn a_stuck_stream_holds_up_one_queue_and_only_its_own_of_many() {
        assert_eq!(popped(Order::OneQueue, 50), []);
        assert_eq!(popped(Order::PerStream, 50), ['b', 'c']);
        assert_eq!(popped(Order::OneQueue, 100), ['a', 'b', 'c']);
        let both = popped(Order::PerStream, 25);
        assert_eq!(both, ['b'], "c waits for both of its streams");
    }

    #[test]
    fn places_are_used_again() {
        let mut pending = Pending::new(Order::PerStream);
        for round in 0..10 {
            pending.push(round, &[(0, round)]);
            assert_eq!(pending.iter().count(), 1);
            assert_eq!(pending.pop(round), Some(round));
        }
        assert_eq!(pending.waiting.len(), 1);
    }
}
