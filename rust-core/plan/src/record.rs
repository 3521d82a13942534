//! What a run asked for, in little memory: what a plan is made from.
//!
//! Knows no clock: time is the number of events so far, since only their order matters. Takes 16 bytes for
//! each request, and for each that is live now another 24 or so in a map from ids to requests. Vectors
//! grow by doubling, so twice as much may be taken. [`Record::new`]'s limit bounds all of it.
//!
//! Invariant: a request's end is later than its begin, and no two events are at the same moment.

use std::borrow::Cow;
use std::collections::HashMap;

use pinbuddy_events::{MOST_BYTES, Op};

use crate::Block;
use crate::file::{GRANULE, MOST_REGION};
use crate::random::Random;

/// The moment of what has not happened.
pub(crate) const NEVER: u32 = u32::MAX;

/// How often a thread's delay changes, once in so many requests; and by how many events it is late at most.
const ON_TIME: usize = 4;
const MOST_BEHIND: usize = 16;

/// A request in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// When it was made.
    pub(crate) begin: u32,
    /// When its memory was free again; [`NEVER`] if it was not.
    pub(crate) over: u32,
    pub(crate) granules: u32,
    pub(crate) lane: u32,
}

impl Request {
    /// Its lifetime, which ends at `end` if that is not known.
    pub(crate) fn block(&self, end: u32) -> Block {
        Block { lower: u64::from(self.begin), upper: u64::from(self.over.min(end)), size: self.bytes() }
    }

    /// Rounded up to granules.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.granules) * GRANULE
    }
}

/// A request begins or is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) moment: u32,
    pub(crate) number: u32,
    pub(crate) begins: bool,
}

/// How many bytes live when.
pub(crate) struct Levels<'r> {
    pub(crate) record: &'r Record,
    /// Just before each request, in order.
    pub(crate) before: Vec<u64>,
}

impl<'r> Levels<'r> {
    pub(crate) fn of(record: &'r Record) -> Self {
        let requests = record.requests.iter();
        let mut ends: Vec<(u32, u64)> = requests.clone().map(|it| (it.over, it.bytes())).collect();
        ends.sort_unstable_by_key(|it| it.0);
        let (mut live, mut ends) = (0, ends.into_iter().peekable());
        let before = requests.map(|it| {
            while let Some((_, bytes)) = ends.next_if(|end| end.0 < it.begin) {
                live -= bytes;
            }
            let before = live;
            live += it.bytes();
            before
        });
        Self { before: before.collect(), record }
    }

    /// The bytes that live just after the last request before a moment.
    pub(crate) fn at_last_before(&self, moment: u32) -> u64 {
        let requests = &self.record.requests;
        let last = requests.partition_point(|it| it.begin < moment).checked_sub(1);
        last.map_or(0, |it| self.before[it] + requests[it].bytes())
    }
}

/// Requests, and when iterations began and the cache was emptied. See the module's documentation.
#[derive(Clone, Debug)]
pub struct Record {
    pub(crate) requests: Vec<Request>,
    pub(crate) marks: Vec<u32>,
    /// When the cache was emptied.
    pub(crate) clears: Vec<u32>,
    /// Of device memory, by request: when it may be over that was over earlier by chance, the latest first.
    pub(crate) late: HashMap<u32, [u32; 2]>,
    /// How many events there were: the moment of the next one.
    pub(crate) now: u32,
    limit: u32,
    live: HashMap<u64, u32>,
    live_bytes: u64,
    peak: u64,
}

impl Record {
    /// An empty record that takes `limit` events.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self {
            requests: Vec::new(),
            marks: Vec::new(),
            clears: Vec::new(),
            late: HashMap::new(),
            now: 0,
            limit: limit.min(NEVER - 1),
            live: HashMap::new(),
            live_bytes: 0,
            peak: 0,
        }
    }

    /// Takes what happened next; false, and nothing is taken, once the record is full.
    ///
    /// A thread is the number of its lane: how many lanes there were before its first request. Threads that never live at the
    /// same time may share one. A request is over when its memory may be used again, [`Op::over`]. A request whose id still
    /// names another one ends that one. What cannot be is ignored: the end of a request that is not in the record, a request
    /// of no bytes or of more than 1 TiB; and so is what is neither a request, nor its end, an iteration or a clear.
    pub fn push(&mut self, op: Op) -> bool {
        if self.is_full() || !self.has_room() {
            return false;
        }
        match op {
            Op::Request { id, bytes, thread: lane, .. } if (1..=MOST_BYTES).contains(&bytes) => {
                let number = self.requests.len() as u32;
                if let Some(other) = self.live.insert(id, number) {
                    self.end(other);
                    self.now += 1;
                }
                let granules = bytes.div_ceil(GRANULE) as u32;
                self.requests.push(Request { begin: self.now, over: NEVER, granules, lane });
                self.live_bytes += u64::from(granules) * GRANULE;
                self.peak = self.peak.max(self.live_bytes);
            }
            Op::Iteration => self.marks.push(self.now),
            Op::Clear => self.clears.push(self.now),
            _ => match op.over().and_then(|id| self.live.remove(&id)) {
                Some(number) => self.end(number),
                None => return true,
            },
        }
        self.now += 1;
        true
    }

    /// Whether one more of anything can be taken. Where the system has no memory for that, the record is full.
    fn has_room(&mut self) -> bool {
        let lists = [&mut self.marks, &mut self.clears];
        let has_room = lists.into_iter().all(|it| it.try_reserve(1).is_ok())
            && self.requests.try_reserve(1).is_ok()
            && self.live.try_reserve(1).is_ok();
        if !has_room {
            self.limit = self.now;
        }
        has_room
    }

    fn end(&mut self, number: u32) {
        let request = &mut self.requests[number as usize];
        request.over = self.now;
        self.live_bytes -= request.bytes();
    }

    /// All that happens to these requests, in order. What is longer than any region is left out: it is pinned when it is asked for.
    pub(crate) fn changes(&self, requests: &[u32]) -> Vec<Change> {
        let mut changes = Vec::with_capacity(requests.len() * 2);
        for &number in requests {
            let own = &self.requests[number as usize];
            if own.bytes() > MOST_REGION {
                continue;
            }
            let ends = [(own.begin, true), (own.over, false)];
            let known = ends.into_iter().filter(|&(moment, _)| moment != NEVER);
            changes.extend(known.map(|(moment, begins)| Change { moment, number, begins }));
        }
        changes.sort_unstable_by_key(|it| it.moment);
        changes
    }

    /// The same of all requests.
    pub(crate) fn all_changes(&self) -> Vec<Change> {
        self.changes(&(0..self.requests.len() as u32).collect::<Vec<_>>())
    }

    /// The same requests, where threads that overtake one another do so at other moments. What a thread does stays in its order.
    pub(crate) fn interleaved(&self, random: &mut Random) -> Self {
        // Of each lane, by how much it is late, and its last event.
        let mut lanes: HashMap<u32, (u64, u64)> = HashMap::new();
        let mut events = Vec::with_capacity(2 * self.requests.len());
        for change in self.all_changes() {
            let lane = self.requests[change.number as usize].lane;
            let (behind, last) = lanes.entry(lane).or_default();
            if random.below(ON_TIME) == 0 {
                *behind = random.below(MOST_BEHIND) as u64;
            }
            *last = (*last).max(u64::from(change.moment) + *behind);
            events.push((*last, u64::from(change.number), change.begins));
        }
        // Stable: each lane stays in its order.
        events.sort_by_key(|it| it.0);
        let mut made = Self::new(u32::MAX);
        for (_, id, begins) in events {
            let Request { granules, lane, .. } = self.requests[id as usize];
            made.push(match begins {
                true => Op::request(id, u64::from(granules) * GRANULE).on_thread(lane),
                false => Op::free(id),
            });
        }
        made
    }

    /// Forgets when requests ended that were there at the last request. A program that ends frees all it has, which does
    /// not tell how long it would have lived.
    pub(crate) fn forget_the_end(&mut self) {
        let last = self.requests.last().map_or(NEVER, |it| it.begin);
        for request in &mut self.requests {
            if request.over > last {
                request.over = NEVER;
            }
        }
    }

    /// The same, after [`Self::forget_the_end`].
    pub(crate) fn without_the_end(&self) -> Cow<'_, Self> {
        let last = self.requests.last().map_or(NEVER, |it| it.begin);
        let ends = |it: &Request| it.over > last && it.over != NEVER;
        if !self.requests.iter().any(ends) {
            return Cow::Borrowed(self);
        }
        let mut record = self.clone();
        record.forget_the_end();
        Cow::Owned(record)
    }

    /// Whether it takes no more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.now >= self.limit
    }

    /// How many requests it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether it has no request.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The most bytes of requests that lived at once, each rounded up to granules.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.peak
    }
}
