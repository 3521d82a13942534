//! In which order segments are tried: the fullest first, wholly idle ones last.
//!
//! A sorted array of small entries. Knows segments as numbers only; the arena tells it what
//! changed. Partly used segments come before wholly idle ones, so that a segment stays idle, and
//! can be given back, while any other has room; within each kind the one with fewest free granules
//! comes first, and of equals the oldest.
//!
//! Cost, with S segments: finding is O(log S) to skip those with too little free altogether, then
//! a scan over the partly used ones that have enough free but in pieces: 24 bytes each, at most S.
//! A change moves one entry past those that it overtakes. A tree set would make that O(log S) and
//! each step a pointer to follow; for hundreds of segments the array is faster.
//!
//! Invariant: sorted by ([`Entry::room`], age); one entry for each segment (audited).

/// A segment in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Free granules, and above them a bit that is set where the segment is wholly idle.
    room: u64,
    /// Counts adoptions, so the older has the lower one.
    age: u64,
    /// The longest free run, in granules.
    longest: u32,
    /// The arena's slot.
    slot: u32,
}

/// Above any count of granules.
const IDLE: u64 = 1 << 32;

impl Entry {
    pub(crate) fn new(free: u32, idle: bool, longest: u32, age: u64, slot: u32) -> Self {
        Self {
            room: u64::from(free) | if idle { IDLE } else { 0 },
            age,
            longest,
            slot,
        }
    }

    fn key(&self) -> (u64, u64) {
        (self.room, self.age)
    }

    pub(crate) fn slot(&self) -> usize {
        self.slot as usize
    }

    /// Whether it is tried before `other`.
    pub(crate) fn comes_before(&self, other: &Self) -> bool {
        self.key() < other.key()
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct FillOrder(Vec<Entry>);

impl FillOrder {
    /// The place of the first segment with a free run of `length` granules.
    #[inline]
    pub(crate) fn find(&self, length: u32) -> Option<usize> {
        let from = self
            .0
            .partition_point(|entry| entry.room < u64::from(length));
        let partly_used = self.0[from..].iter().take_while(|entry| entry.room < IDLE);
        let mut idle_from = from;
        for entry in partly_used {
            if entry.longest >= length {
                return Some(idle_from);
            }
            idle_from += 1;
        }
        // The free granules of an idle segment are one run.
        let enough = |entry: &Entry| entry.room < IDLE + u64::from(length);
        let place = idle_from + self.0[idle_from..].partition_point(enough);
        (place < self.0.len()).then_some(place)
    }

    /// The slot of the segment at `place`.
    #[inline]
    pub(crate) fn slot_at(&self, place: usize) -> usize {
        self.0[place].slot()
    }

    /// Where `entry` is, as it was inserted or last moved.
    #[inline]
    pub(crate) fn place_of(&self, entry: &Entry) -> Option<usize> {
        self.0.binary_search_by_key(&entry.key(), Entry::key).ok()
    }

    /// A new segment.
    pub(crate) fn insert(&mut self, entry: Entry) {
        let place = self.0.partition_point(|other| other.key() < entry.key());
        self.0.insert(place, entry);
    }

    /// Puts `entry` in the stead of the one at `place`, and where it now belongs.
    #[inline]
    pub(crate) fn update(&mut self, mut place: usize, entry: Entry) {
        while place > 0 && self.0[place - 1].key() > entry.key() {
            self.0[place] = self.0[place - 1];
            place -= 1;
        }
        while place + 1 < self.0.len() && self.0[place + 1].key() < entry.key() {
            self.0[place] = self.0[place + 1];
            place += 1;
        }
        self.0[place] = entry;
    }

    /// Removes all wholly idle segments.
    pub(crate) fn take_idle(&mut self) -> Vec<Entry> {
        let from = self.0.partition_point(|entry| entry.room < IDLE);
        let mut idle = self.0.split_off(from);
        idle.sort_unstable_by_key(|entry| entry.age);
        idle
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

#[cfg(test)]
mod tests {
    use super::*;

    fn order(entries: &[(u32, bool, u32)]) -> FillOrder {
        let mut order = FillOrder::default();
        for (n, &(free, idle, longest)) in (0u32..).zip(entries) {
            order.insert(Entry::new(free, idle, longest, u64::from(n), n));
        }
        order
    }

    fn found(order: &FillOrder, length: u32) -> Option<usize> {
        order.find(length).map(|place| order.slot_at(place))
    }

    #[test]
    fn the_fullest_that_fits_comes_first() {
        let order = order(&[(100, false, 90), (50, false, 50), (70, false, 10)]);
        assert_eq!(found(&order, 40), Some(1));
        assert_eq!(found(&order, 60), Some(0)); // slot 2 has 70 free, in pieces
        assert_eq!(found(&order, 91), None);
    }

    #[test]
    fn an_idle_segment_is_the_last_choice_even_if_it_is_small() {
        let order = order(&[(30, true, 30), (1000, false, 1000), (20, true, 20)]);
        assert_eq!(found(&order, 10), Some(1));
        assert_eq!(found(&order, 1000), Some(1));
        let order = self::order(&[(30, true, 30), (1000, false, 5), (20, true, 20)]);
        assert_eq!(found(&order, 10), Some(2));
        assert_eq!(found(&order, 25), Some(0));
        assert_eq!(found(&order, 31), None);
    }

    #[test]
    fn of_equals_the_oldest_comes_first() {
        let order = order(&[(10, true, 10), (10, true, 10), (10, true, 10)]);
        assert_eq!(found(&order, 10), Some(0));
    }

    #[test]
    fn an_update_moves_to_where_it_belongs() {
        let mut order = order(&[
            (10, false, 1),
            (20, false, 1),
            (30, false, 1),
            (40, false, 1),
        ]);
        let slots = |order: &FillOrder| order.0.iter().map(Entry::slot).collect::<Vec<_>>();
        order.update(0, Entry::new(35, false, 1, 0, 0));
        assert_eq!(slots(&order), [1, 2, 0, 3]);
        order.update(3, Entry::new(15, false, 1, 3, 3));
        assert_eq!(slots(&order), [3, 1, 2, 0]);
        order.update(2, Entry::new(31, false, 1, 2, 2));
        assert_eq!(slots(&order), [3, 1, 2, 0]);
        assert_eq!(order.place_of(&Entry::new(31, false, 1, 2, 2)), Some(2));
        assert_eq!(order.place_of(&Entry::new(30, false, 1, 2, 2)), None);
    }

    #[test]
    fn taking_the_idle_ones_leaves_the_rest() {
        let mut order = order(&[(30, true, 30), (10, false, 10), (20, true, 20)]);
        let taken: Vec<usize> = order.take_idle().iter().map(Entry::slot).collect();
        assert_eq!(taken, [0, 2]); // oldest first, whatever their size
        assert_eq!(order.entries().len(), 1);
        assert_eq!(order.take_idle(), []);
    }
}
