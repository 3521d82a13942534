//! Merges what threads recorded into one sequence of events, in the order of their times.
//!
//! An entry is passed on once no ring can hold an earlier one that it depends on: an allocation is written before its
//! block reaches another thread, so what was written before the rings were read is complete up to the moment before.
//! Knows no sink. Memory: what is live or pending, at most [`MOST_BLOCKS`], and one drain. Invariants: those of
//! [`super::sink`].

use pinbuddy_events::{Event, MOST_BYTES, Op, Whose};
use rustc_hash::FxHashMap;

use super::clock::{Clock, Moment};
use super::source::{Allocation, Entry, Kind, Lost, Source};

/// The most blocks that are followed at once; requests beyond are dropped.
const MOST_BLOCKS: usize = 1 << 20;
/// Streams beyond are one.
const MOST_STREAMS: u32 = 1 << 16;

/// How far entries stay behind the time of a drain, in nanoseconds: processors read their counters a little early, and
/// not all at once.
pub(super) const BEHIND: u64 = 20_000;

/// What happens to what a drain found.
pub(super) trait Output {
    /// The next event.
    fn event(&mut self, event: Event);
    /// These entries were dropped.
    fn lost(&mut self, entries: Lost);
}

/// An entry of a thread, with its time, and how many were held before it.
#[derive(Clone, Copy, Debug)]
struct Timed {
    at: u64,
    number: u64,
    thread: u32,
    entry: Entry,
}

/// A block between its request and its end.
#[derive(Clone, Copy, Debug)]
struct Block {
    id: u64,
    whose: Whose,
    /// Outstanding events, once it was freed.
    pending: Option<u64>,
}

/// What an entry came to.
enum Applied {
    Event(Whose, Op),
    Nothing,
    /// What it depends on was not seen yet.
    Early,
    /// It cannot be followed.
    Lost,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Merger {
    session: u16,
    clock: Clock,
    /// By ring: the time of its last entry.
    last: Vec<u64>,
    /// Entries that are not passed on yet.
    held: Vec<Timed>,
    /// How many were held so far.
    number: u64,
    /// What a drain writes into.
    found: Vec<Entry>,
    /// Its keys are numbers of ours, so nobody can choose them to collide.
    blocks: FxHashMap<Allocation, Block>,
    /// Entries that came before what they depend on.
    early: Vec<Timed>,
    streams: FxHashMap<u64, u32>,
    ids: u64,
    /// The time of the last event.
    at: u64,
}

impl Merger {
    /// For the recording of this number, whose time begins now.
    pub(super) fn new(session: u16, now: Moment) -> Self {
        Self {
            session,
            clock: Clock::starting(now),
            last: Vec::new(),
            held: Vec::new(),
            number: 0,
            found: Vec::new(),
            blocks: FxHashMap::default(),
            early: Vec::new(),
            streams: FxHashMap::default(),
            ids: 0,
            at: 0,
        }
    }

    /// The number that the next block gets.
    pub(super) fn next_id(&self) -> u64 {
        self.ids + 1
    }

    /// Drains all rings once; `now` was read before. Returns the most entries that a ring held.
    pub(super) fn drain(&mut self, source: &dyn Source, now: Moment, to: &mut impl Output) -> usize {
        if !self.clock.compare(now) {
            return 0;
        }
        let (mut lost, mut most) = (source.lost(), 0);
        for ring in 0..source.rings() {
            self.found.clear();
            let drained = source.drain(ring, &mut self.found);
            lost += drained.lost;
            most = most.max(self.found.len());
            lost += self.hold(ring, drained.thread);
        }
        if lost != Lost::default() {
            to.lost(lost);
        }
        self.pass(now.ns.saturating_sub(BEHIND), to);
        most
    }

    /// Holds what was found in this ring. Returns what there is no memory for.
    fn hold(&mut self, ring: usize, thread: u32) -> Lost {
        if self.last.len() <= ring {
            self.last.resize(ring + 1, 0);
        }
        let last = &mut self.last[ring];
        let mut lost = Lost::default();
        let has_room = self.held.try_reserve(self.found.len()).is_ok();
        for &entry in &self.found {
            if !has_room {
                lost += Lost::one(entry.whose);
            } else if entry.allocation.session() == self.session {
                // A thread's entries stay in their order, whichever processors wrote them.
                *last = self.clock.at(entry.ticks).max(*last);
                let at = *last;
                let number = self.number;
                self.number += 1;
                self.held.push(Timed { at, number, thread, entry });
            }
        }
        lost
    }

    /// Passes on what happened until then.
    fn pass(&mut self, until: u64, to: &mut impl Output) {
        // Entries of one ring stay in their order. A stable sort would take memory.
        self.held.sort_unstable_by_key(|it| (it.at, it.number));
        let count = self.held.partition_point(|it| it.at <= until);
        let held = std::mem::take(&mut self.held);
        let before = std::mem::take(&mut self.early);
        for timed in &held[..count] {
            self.take(*timed, to);
        }
        self.held = held;
        self.held.drain(..count);
        // Twice too early: what it depends on was dropped.
        let mut dropped = Lost::default();
        for timed in before {
            if !self.apply(timed, to) {
                dropped += Lost::one(timed.entry.whose);
            }
        }
        if dropped != Lost::default() {
            to.lost(dropped);
        }
    }

    fn take(&mut self, timed: Timed, to: &mut impl Output) {
        if !self.apply(timed, to) {
            self.early.push(timed);
            return;
        }
        if self.early.is_empty() {
            return;
        }
        // In the order in which they depend on each other.
        let same = |it: &mut Timed| it.entry.allocation == timed.entry.allocation;
        let mut waiting: Vec<Timed> = self.early.extract_if(.., same).collect();
        waiting.sort_by_key(|it| match it.entry.kind {
            Kind::Use { .. } => 0,
            Kind::Free { .. } => 1,
            _ => 2,
        });
        for timed in waiting {
            if !self.apply(timed, to) {
                self.early.push(timed);
            }
        }
    }

    /// False if it came too early.
    fn apply(&mut self, timed: Timed, to: &mut impl Output) -> bool {
        match self.applied(&timed) {
            Applied::Event(whose, op) => {
                self.at = self.at.max(timed.at);
                let at = self.at;
                to.event(Event { at, whose, op });
            }
            Applied::Nothing => {}
            Applied::Early => return false,
            Applied::Lost => to.lost(Lost::one(timed.entry.whose)),
        }
        true
    }

    fn applied(&mut self, timed: &Timed) -> Applied {
        let &Timed { at, thread, entry, .. } = timed;
        let known = self.blocks.get_mut(&entry.allocation);
        match (entry.kind, known) {
            (Kind::Event(Op::Request { .. }), Some(_)) => Applied::Early,
            (Kind::Event(op), known) => {
                let waiting = known.filter(|it| it.pending.is_none()).map(|it| it.id);
                self.event(at, thread, &entry, op, waiting)
            }
            (Kind::Use { stream }, Some(&mut Block { id, whose, pending: None })) => {
                let stream = match whose {
                    Whose::Host => self.stream(stream),
                    Whose::Device(_) => stream as u32,
                };
                Applied::Event(whose, Op::Use { id, stream })
            }
            (Kind::Free { events }, Some(block @ Block { pending: None, .. })) => {
                let &mut Block { id, whose, .. } = block;
                let pending = events > 0;
                if pending {
                    block.pending = Some(events);
                } else {
                    self.blocks.remove(&entry.allocation);
                }
                let op = Op::Free { id, thread, pending };
                Applied::Event(whose, op)
            }
            (Kind::Done, Some(block)) => {
                let &mut Block { id, whose, .. } = block;
                let Some(events) = &mut block.pending else {
                    return Applied::Early;
                };
                *events -= 1;
                if *events > 0 {
                    return Applied::Nothing;
                }
                self.blocks.remove(&entry.allocation);
                Applied::Event(whose, Op::Safe { id })
            }
            _ => Applied::Early,
        }
    }

    /// What is an event already, but for its ids and thread. `waiting`: the live block that it is about.
    fn event(&mut self, at: u64, thread: u32, entry: &Entry, mut op: Op, waiting: Option<u64>) -> Applied {
        match &mut op {
            Op::Request { id, bytes, thread: by, .. } => {
                *by = thread;
                match self.begin(entry, *bytes) {
                    Some(number) => *id = number,
                    None => return Applied::Lost,
                }
            }
            // Never early: its request is before it in the same ring.
            Op::Wait { id, took, thread: by } => {
                (*id, *by) = (waiting, thread);
                // It may have begun before the recording did, or been over before that.
                *took = (*took).min(self.at.max(at));
                if *took == 0 {
                    return Applied::Nothing;
                }
            }
            _ => {}
        }
        Applied::Event(entry.whose, op)
    }

    /// The number of the stream of this name; streams beyond [`MOST_STREAMS`] share one.
    fn stream(&mut self, name: u64) -> u32 {
        let next = (self.streams.len() as u32).min(MOST_STREAMS);
        if next < MOST_STREAMS {
            *self.streams.entry(name).or_insert(next)
        } else {
            self.streams.get(&name).copied().unwrap_or(next)
        }
    }

    /// The number of a new block; `None` if it cannot be followed.
    fn begin(&mut self, entry: &Entry, bytes: u64) -> Option<u64> {
        let has_room = self.blocks.len() < MOST_BLOCKS && self.blocks.try_reserve(1).is_ok();
        if !has_room || !(1..=MOST_BYTES).contains(&bytes) {
            return None;
        }
        self.ids += 1;
        let block = Block { id: self.ids, whose: entry.whose, pending: None };
        self.blocks.insert(entry.allocation, block);
        Some(self.ids)
    }
}

#[cfg(test)]
pub(super) mod tests;
