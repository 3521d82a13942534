//! Which thread has which lane.
//!
//! Invariant: a lane has one thread at most, and a thread one lane, from its first request to its end.

use super::Slots;

/// Threads with larger numbers have no lane.
pub const MOST_THREADS: usize = 1 << 16;

/// So many lanes are looked at for a thread whose own is lost: as many as runs that differ have in a plan, of a few threads each.
const MOST_LOOKED_AT: usize = 16;

/// Who has a lane.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Holders {
    /// Whether a thread has it now.
    held: bool,
    /// How many threads had it and ended.
    before: u32,
}

/// How a lane suits a thread's first request: the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Suits {
    /// The lane goes on with it where the thread before has left it: so it was recorded, where the record's threads ended
    /// and began as these do.
    GoesOn,
    /// The lane may begin with it; how many threads have had it, and which of its first steps that is. Those that fewer have had
    /// come first: where a record's threads have lanes of their own, each of them gets its own.
    Begins(u32, usize),
    /// It has been had, is not sure that this comes next, and does not begin with it, but has such a step: a record's threads
    /// of several kinds may share a lane, and their numbers of requests differ from run to run.
    Has,
    /// It has none, but nobody has had it.
    Unlike,
}

impl Slots {
    /// Gives a thread a lane that nobody has, the one that suits it best; of equals, the first. A lane that a thread has had
    /// waits for one that suits it: between two epochs of a data loader, each of which has a thread, no other must take it.
    #[cold]
    pub(super) fn assign(&mut self, thread: u32, bytes: usize) -> Option<u32> {
        let index = thread as usize;
        let free = (0..self.courses.len()).filter(|&lane| !self.holders[lane].held);
        let suiting = free.filter_map(|lane| Some((self.suits(lane, bytes)?, lane)));
        let best = suiting.min().filter(|_| index < MOST_THREADS);
        let Some((suits, lane)) = best else {
            self.needed = None;
            self.counts.unplanned += 1;
            return None;
        };
        if index >= self.lane_of.len() {
            self.lane_of.resize(index + 1, None);
        }
        let course = &mut self.courses[lane];
        match suits {
            Suits::GoesOn => {}
            Suits::Has => course.begin_at(bytes),
            Suits::Begins(..) | Suits::Unlike => course.begin_anew(),
        }
        self.holders[lane].held = true;
        self.lane_of[index] = Some(lane as u32);
        Some(lane as u32)
    }

    fn suits(&self, lane: usize, bytes: usize) -> Option<Suits> {
        let (course, before) = (&self.courses[lane], self.holders[lane].before);
        if before > 0 && course.goes_on_with(bytes) {
            Some(Suits::GoesOn)
        } else if let Some(step) = course.may_begin_with(bytes) {
            Some(Suits::Begins(before, step))
        } else if before > 0 && course.has(bytes) {
            Some(Suits::Has)
        } else {
            (before == 0).then_some(Suits::Unlike)
        }
    }

    /// A thread whose lane is lost gets one that nobody has had, and that knows what it asks for, with the step that this is. A plan for
    /// runs that differ has lanes that begin alike; so may two threads, of which the first to ask takes the other's.
    #[cold]
    pub(super) fn change_lane(&mut self, thread: u32, lane: u32) -> Option<(u32, usize)> {
        let sizes = self.courses[lane as usize].lost_with()?;
        let is_free = |it: &Holders| !it.held && it.before == 0;
        let free = (0..self.courses.len()).filter(|&it| is_free(&self.holders[it]));
        let free: Vec<usize> = free.take(MOST_LOOKED_AT).collect();
        let behind = |it: usize| Some((it, self.courses[it].begin_behind(sizes, self.live)?));
        let (other, step) = free.into_iter().find_map(behind)?;
        self.courses[lane as usize].begin_anew();
        self.holders[lane as usize].held = false;
        self.holders[other].held = true;
        self.lane_of[thread as usize] = Some(other as u32);
        Some((other as u32, step))
    }

    /// Whether the lane waits for a thread, since the one that had it has ended.
    pub(super) fn is_between_threads(&self, lane: usize) -> bool {
        let Holders { held, before } = self.holders[lane];
        !held && before > 0
    }

    /// This thread has ended: its lane waits for the next one that suits it, and its number may become another's. What it
    /// asked for and nobody has freed stays where it is.
    pub fn thread_ended(&mut self, thread: u32) {
        let held = self.lane_of.get_mut(thread as usize);
        if let Some(lane) = held.and_then(Option::take) {
            let holders = &mut self.holders[lane as usize];
            holders.held = false;
            holders.before = holders.before.saturating_add(1);
            self.courses[lane as usize].thread_ended();
        }
    }
}
