//! Which thread has which lane.
//!
//! Invariant: a lane has one thread at most, and a thread one lane, from its first request to its end.

use super::Slots;

/// Threads with larger numbers have no lane. The bridge's C++ side has as many numbers, and gives this one to all others.
const MOST_THREADS: usize = 1 << 16;

/// Who has a lane.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Holders {
    /// Whether a thread has it now.
    held: bool,
    /// How many threads had it and ended.
    before: u32,
}

impl Slots {
    /// Gives a thread a lane that nobody has: the first that may begin with this request, else the first. Lanes that
    /// nobody has had come before others: where threads end and others begin, as with each epoch of a data loader, each of
    /// them was recorded with a lane of its own. One that a thread has had waits for the next of its kind: between two
    /// epochs another thread must not take it.
    #[cold]
    pub(super) fn assign(&mut self, thread: u32, bytes: usize) -> Option<u32> {
        let index = thread as usize;
        let free = (0..self.courses.len()).filter(|&lane| !self.holders[lane].held);
        let ranked = free.map(|lane| {
            let fits = self.courses[lane].may_begin_with(bytes);
            (!fits, self.holders[lane].before, lane)
        });
        let suits = |&(unfit, before, _): &(bool, u32, usize)| !unfit || before == 0;
        let lane = ranked.filter(suits).min().map(|it| it.2);
        let Some(lane) = lane.filter(|_| index < MOST_THREADS) else {
            self.needed = None;
            self.counts.unplanned += 1;
            return None;
        };
        if index >= self.lane_of.len() {
            self.lane_of.resize(index + 1, None);
        }
        self.holders[lane].held = true;
        self.lane_of[index] = Some(lane as u32);
        Some(lane as u32)
    }

    /// Whether the lane waits for a thread, since the one that had it has ended.
    pub(super) fn is_between_threads(&self, lane: usize) -> bool {
        let Holders { held, before } = self.holders[lane];
        !held && before > 0
    }

    /// This thread has ended: its lane begins anew with the next thread that gets it, and its number may become
    /// another's. What it asked for and nobody has freed stays where it is.
    pub fn thread_ended(&mut self, thread: u32) {
        let held = self.lane_of.get_mut(thread as usize);
        if let Some(lane) = held.and_then(Option::take) {
            let holders = &mut self.holders[lane as usize];
            holders.held = false;
            holders.before = holders.before.saturating_add(1);
            self.courses[lane as usize].begin_anew();
        }
    }
}
