//! What a program asked for, out of what an allocator noted down.
//!
//! Memory has a new id each time it is handed out, in place of its address. A history may begin in the middle of
//! a program: what is freed and was handed out before is left out, and counted. Does not say which thread asked, nor which
//! streams used memory: all that is freed is pending until its end was noted down.

use std::collections::{HashMap, VecDeque};

use pinbuddy_events::{Event, LATEST, MICROSECOND, Op, Whose};

use crate::entry::{Action, Entry};

/// What was odd about a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Frees of memory that was handed out before the history begins.
    pub before: u64,
    /// Memory handed out a second time, with no free in between that was noted down.
    pub unfreed: u64,
}

/// The events of one allocator, in their order.
#[derive(Debug)]
pub struct Events<'s> {
    whose: Whose,
    entries: std::slice::Iter<'s, Entry>,
    /// Ends of iterations, sorted, that are still to come.
    steps: std::vec::IntoIter<u64>,
    first: u64,
    /// The time of the last event, in nanoseconds.
    at: u64,
    /// By address: the id, and whether it was freed.
    live: HashMap<u64, (u64, bool)>,
    next: u64,
    /// More events of the same entry, in turn.
    then: VecDeque<Event>,
    summary: Summary,
}

impl<'s> Events<'s> {
    pub(crate) fn new(whose: Whose, entries: &'s [Entry], steps: &[u64]) -> Self {
        let first = entries.first().map_or(0, |it| it.at);
        let last = entries.last().map_or(0, |it| it.at);
        // What ended before or after the history says nothing about it.
        let within = steps.iter().copied().filter(|at| (first..=last).contains(at));
        let mut steps: Vec<u64> = within.collect();
        steps.sort_unstable();
        Self {
            whose,
            entries: entries.iter(),
            steps: steps.into_iter(),
            first,
            at: 0,
            live: HashMap::new(),
            next: 0,
            then: VecDeque::new(),
            summary: Summary::default(),
        }
    }

    /// What was odd, of the events so far.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    fn event(&mut self, at: u64, op: Op) -> Event {
        let since = at.saturating_sub(self.first).min(LATEST / MICROSECOND);
        self.at = self.at.max(since * MICROSECOND);
        let whose = match op {
            Op::Iteration => Whose::Host,
            _ => self.whose,
        };
        let at = self.at;
        Event { at, whose, op }
    }

    /// The event of an entry, if there is one.
    fn read(&mut self, entry: &Entry) -> Option<Event> {
        let &Entry { address, bytes, at, stream, action, stack: _, private } = entry;
        let op = match action {
            Action::Alloc if !entry.is_request() => return None,
            Action::Alloc => {
                let id = self.next;
                self.next += 1;
                let op = Op::Request { id, bytes, thread: 0, stream, private };
                let Some((before, freed)) = self.live.insert(address, (id, false)) else {
                    return Some(self.event(at, op));
                };
                let (safe, again) = (Op::Safe { id: before }, self.event(at, op));
                if !freed {
                    self.summary.unfreed += 1;
                    let safe = self.event(at, safe);
                    self.then.extend([safe, again]);
                    return Some(self.event(at, free(before)));
                }
                self.then.push_back(again);
                safe
            }
            Action::FreeRequested => match self.live.get_mut(&address) {
                Some((id, freed)) if !*freed => {
                    *freed = true;
                    free(*id)
                }
                _ => {
                    self.summary.before += 1;
                    return None;
                }
            },
            Action::FreeCompleted => match self.live.remove(&address) {
                Some((id, true)) => Op::Safe { id },
                Some((id, false)) => {
                    let safe = self.event(at, Op::Safe { id });
                    self.then.push_back(safe);
                    free(id)
                }
                None => return None,
            },
            Action::SegmentAlloc => Op::SegmentAlloc { bytes },
            Action::SegmentFree => Op::SegmentFree { bytes },
        };
        Some(self.event(at, op))
    }
}

const fn free(id: u64) -> Op {
    Op::Free { id, thread: 0, pending: true }
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        if let Some(then) = self.then.pop_front() {
            return Some(then);
        }
        loop {
            let Some(entry) = self.entries.as_slice().first() else {
                let at = self.steps.next()?;
                return Some(self.event(at, Op::Iteration));
            };
            if let Some(step) = self.steps.as_slice().first().copied()
                && step < entry.at
            {
                self.steps.next();
                return Some(self.event(step, Op::Iteration));
            }
            self.entries.next();
            if let Some(event) = self.read(entry) {
                return Some(event);
            }
        }
    }
}
