//! A segment's free runs by their length: for the shortest that holds a request.
//!
//! Only segments of an engine that mixes sizes have them. The leftmost run is found faster, in the tree;
//! but where one segment is all there is, and no longer than it must be, the shortest wastes less of it: a
//! long run stays whole for a long request. Two sorted arrays of small entries: a segment has a few hundred
//! runs, of which a change moves a part in one copy.
//!
//! Invariants: both arrays hold the same runs, which neither overlap nor touch (audited).

use crate::units::Granules;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Runs {
    /// Start and length, in granules.
    by_start: Vec<(u32, u32)>,
    /// Length and start.
    by_length: Vec<(u32, u32)>,
}

impl Runs {
    /// One run.
    pub(crate) fn new(length: Granules) -> Self {
        let mut runs = Self {
            by_start: Vec::with_capacity(256),
            by_length: Vec::with_capacity(256),
        };
        runs.insert(0, 0, length.get());
        runs
    }

    /// Takes `length >= 1` granules from the start of the shortest run that holds them, the leftmost of
    /// several; returns their start.
    pub(crate) fn take(&mut self, length: u32) -> Option<u32> {
        let at = self.by_length.partition_point(|run| run.0 < length);
        let &(longer, start) = self.by_length.get(at)?;
        let place = self.by_start.partition_point(|run| run.0 < start);
        self.remove(place);
        if longer > length {
            self.insert(place, start + length, longer - length);
        }
        Some(start)
    }

    /// Frees granules that are taken.
    pub(crate) fn free(&mut self, start: u32, length: u32) {
        let (mut start, mut end) = (start, start + length);
        let mut place = self.by_start.partition_point(|run| run.0 < start);
        if let Some(&(from, length)) = self.by_start.get(place)
            && from == end
        {
            end += length;
            self.remove(place);
        }
        if let Some(before) = place.checked_sub(1)
            && let (from, length) = self.by_start[before]
            && from + length == start
        {
            start = from;
            place = before;
            self.remove(place);
        }
        self.insert(place, start, end - start);
    }

    /// Starts and lengths, in order; none if the arrays do not hold the same.
    pub(crate) fn all(&self) -> Option<&[(u32, u32)]> {
        let mut other: Vec<(u32, u32)> = self.by_length.iter().map(|&(a, b)| (b, a)).collect();
        let is_sorted = self.by_length.is_sorted();
        other.sort_unstable();
        (is_sorted && other == self.by_start).then_some(&self.by_start)
    }

    fn insert(&mut self, place: usize, start: u32, length: u32) {
        self.by_start.insert(place, (start, length));
        let run = (length, start);
        let at = self.by_length.partition_point(|it| *it < run);
        self.by_length.insert(at, run);
    }

    fn remove(&mut self, place: usize) {
        let (start, length) = self.by_start.remove(place);
        let run = (length, start);
        let at = self.by_length.partition_point(|it| *it < run);
        debug_assert_eq!(self.by_length[at], run, "a run without its length");
        self.by_length.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_run_that_is_long_enough_is_taken() {
        let mut runs = Runs::new(Granules::new(100));
        let starts: Vec<_> = [10, 5, 20, 5, 60].map(|it| runs.take(it)).into();
        assert_eq!(starts, [0, 10, 15, 35, 40].map(Some));
        assert_eq!(runs.take(1), None);
        runs.free(15, 20);
        runs.free(0, 10);
        assert_eq!(
            runs.take(6),
            Some(0),
            "the shorter one, though it is as far left"
        );
        assert_eq!(runs.take(6), Some(15));
        assert_eq!(runs.all(), Some(&[(6, 4), (21, 14)][..]));
        runs.free(0, 6);
        runs.free(10, 5);
        assert_eq!(runs.all(), Some(&[(0, 15), (21, 14)][..]), "merged");
        runs.free(15, 6);
        assert_eq!(runs.all(), Some(&[(0, 35)][..]), "merged on both sides");
    }
}
