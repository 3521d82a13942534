//! The order in which segments are tried: those of the request's class, the fullest first, then wholly
//! idle ones.
//!
//! A sorted array of small entries, one for each home. Knows segments as numbers only; the arena reports changes. The
//! kinds follow each other: small, large, idle. A segment in use is tried before an idle one, so that
//! idle segments stay idle, and can be unpinned, while any other has room. Within a kind the one with
//! the fewest free granules comes first, and of equal ones the oldest.
//!
//! Cost, with S segments: finding skips the other class and segments with too little free memory in
//! O(log S), then scans those of the class whose free memory is fragmented: at most S entries of 24
//! bytes. An update moves one entry past those that it overtakes. A tree would make that O(log S), with
//! a pointer to follow at each step; for hundreds of segments the array is faster.
//!
//! Invariant: sorted by ([`Entry::room`], age); one entry for each segment that is not dedicated
//! (audited).

use crate::kind::{Class, SegmentKind};

/// A segment in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Free granules, and in higher bits the kind.
    room: u64,
    /// The number of its adoption: the older segment has the lower one.
    age: u64,
    /// The longest free run, in granules.
    longest: u32,
    /// The arena's slot.
    slot: u32,
}

/// The lowest `room` of a kind: above any of the kind before.
#[inline]
const fn start_of(kind: SegmentKind) -> u64 {
    (kind as u64) << 32
}

/// The lowest `room` of idle segments, after both classes.
const IDLE: u64 = start_of(SegmentKind::Idle);

impl Entry {
    #[inline]
    pub(crate) fn new(free: u32, kind: SegmentKind, longest: u32, age: u64, slot: u32) -> Self {
        Self { room: u64::from(free) | start_of(kind), age, longest, slot }
    }

    fn key(&self) -> (u64, u64) {
        (self.room, self.age)
    }

    pub(crate) fn slot(&self) -> usize {
        self.slot as usize
    }

    /// Whether it stands before `other`.
    pub(crate) fn comes_before(&self, other: &Self) -> bool {
        self.key() < other.key()
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct FillOrder(Vec<Entry>);

impl FillOrder {
    /// The place of the first segment of the class, else of the first idle one, with a free run of
    /// `length` granules.
    #[inline]
    pub(crate) fn find(&self, length: u32, class: Class) -> Option<usize> {
        let idle_from = match self.find_in_use(length, class) {
            Ok(place) => return Some(place),
            Err(end) => end,
        };
        // The free granules of an idle segment are one run.
        let too_short = |entry: &Entry| entry.room < IDLE + u64::from(length);
        let place = idle_from + self.0[idle_from..].partition_point(too_short);
        (place < self.0.len()).then_some(place)
    }

    /// The place of the first segment in use by the class with a free run of `length` granules; if there
    /// is none, the place after the last one of the class.
    #[inline]
    pub(crate) fn find_in_use(&self, length: u32, class: Class) -> Result<usize, usize> {
        let from = start_of(class.kind());
        let to = from + start_of(SegmentKind::Large); // one kind further
        let too_full = |entry: &Entry| entry.room < from + u64::from(length);
        let mut place = self.0.partition_point(too_full);
        for entry in self.0[place..].iter().take_while(|entry| entry.room < to) {
            if entry.longest >= length {
                return Ok(place);
            }
            place += 1;
        }
        Err(place)
    }

    /// The slot of the segment at `place`.
    #[inline]
    pub(crate) fn slot_at(&self, place: usize) -> usize {
        self.0[place].slot()
    }

    /// The place of `entry`, as it was inserted or last updated.
    #[inline]
    pub(crate) fn place_of(&self, entry: &Entry) -> Option<usize> {
        self.0.binary_search_by_key(&entry.key(), Entry::key).ok()
    }

    /// Adds a segment.
    pub(crate) fn insert(&mut self, entry: Entry) {
        let place = self.0.partition_point(|other| other.key() < entry.key());
        self.0.insert(place, entry);
    }

    /// Replaces the entry at `place` by `entry`, at the place where that belongs. Entries between the two
    /// places move in one copy, since most of hundreds may lie there. Always inlined, so that the entry
    /// stays in registers: through memory it would be written in parts and read as a whole, a stall.
    #[inline(always)]
    pub(crate) fn update(&mut self, place: usize, entry: Entry) {
        let key = entry.key();
        let is_after = |other: &Entry| other.key() > key;
        let is_before = |other: &Entry| other.key() < key;
        let to = if place > 0 && is_after(&self.0[place - 1]) {
            let to = self.0[..place - 1].partition_point(is_before);
            self.0.copy_within(to..place, to + 1);
            to
        } else if self.0.get(place + 1).is_some_and(is_before) {
            let to = place + 1 + self.0[place + 2..].partition_point(is_before);
            self.0.copy_within(place + 1..=to, place);
            to
        } else {
            place
        };
        self.0[to] = entry;
    }

    /// Removes the segments for whose slots `keep` returns false.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        self.0.retain(|entry| keep(entry.slot()));
    }

    /// All entries in order.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// For tests of the audit: swaps two entries.
    #[cfg(test)]
    pub(crate) fn corrupt_by_swapping(&mut self, a: usize, b: usize) {
        self.0.swap(a, b);
    }
}
