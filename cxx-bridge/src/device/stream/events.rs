//! Blocks that other streams used: their places wait for events.

use super::StreamPlan;
use crate::pending::PendingQueues;

impl StreamPlan {
    /// Another stream uses the block at this address. False if there is none.
    pub fn uses(&self, address: usize, stream: u64) -> bool {
        let mut state = self.state.lock();
        let Some(block) = state.live.get_mut(&address) else {
            return false;
        };
        if !block.uses.contains(&stream) {
            block.uses.push(stream);
        }
        true
    }

    /// The next freed block whose events are to be recorded, and the streams that used it. One thread at a time asks.
    pub fn to_record(&self) -> Option<(usize, Vec<u64>)> {
        let state = self.state.lock();
        let first = state.deferred.front()?;
        Some((*first, state.freed.get(first)?.uses.clone()))
    }

    /// That block waits for these events, one of each stream that used it.
    pub fn recorded(&self, address: usize, events: &[usize]) {
        let mut state = self.state.lock();
        state.deferred.pop_front();
        if let Some(block) = state.freed.get_mut(&address) {
            block.events = events.len();
            for (&stream, &event) in block.uses.iter().zip(events) {
                self.pending.push(stream, event, address);
            }
        }
    }

    /// The queues of events.
    pub fn pending(&self) -> &PendingQueues {
        &self.pending
    }

    /// An event of the block at this address is complete: how much was asked for it if that was the last one, else 0.
    pub fn event_over(&self, address: usize) -> usize {
        let mut state = self.state.lock();
        let Some(block) = state.freed.get_mut(&address) else {
            return 0;
        };
        block.events = block.events.saturating_sub(1);
        match block.events {
            0 => block.length.requested,
            _ => 0,
        }
    }

    /// All its events are complete.
    pub fn done(&self, address: usize) {
        let mut state = self.state.lock();
        if let Some(block) = state.freed.remove(&address) {
            self.finish(&mut state, &block);
        }
    }
}
