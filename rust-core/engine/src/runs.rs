//! A segment's free runs by their length: for the shortest that holds a request.
//!
//! Segments of an engine that mixes sizes have them in place of a tree. Where one segment is all there is, and no longer
//! than it must be, the shortest wastes less of it than the leftmost: a long run stays whole for a long request. Two
//! sorted arrays of small entries: a segment has a few hundred runs, of which a change moves a part in one copy.
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
        let mut runs = Self { by_start: Vec::with_capacity(256), by_length: Vec::with_capacity(256) };
        runs.by_start.push((0, length.get()));
        runs.by_length.push((length.get(), 0));
        runs
    }

    /// Length of the longest one, in granules.
    #[inline]
    pub(crate) fn longest(&self) -> u32 {
        self.by_length.last().map_or(0, |run| run.0)
    }

    /// The first granule from `from` on that no run holds; it may lie beyond the segment's end.
    pub(crate) fn first_taken(&self, from: u32) -> u32 {
        let after = self.by_start.partition_point(|run| run.0 <= from);
        let before = after.checked_sub(1).map(|at| self.by_start[at]);
        before.map_or(from, |(start, length)| from.max(start + length))
    }

    /// Takes `length >= 1` granules from the start of the shortest run that holds them, the leftmost of
    /// several; returns their start.
    pub(crate) fn take(&mut self, length: u32) -> Option<u32> {
        let at = self.by_length.partition_point(|run| run.0 < length);
        let &(longer, start) = self.by_length.get(at)?;
        let place = self.by_start.partition_point(|run| run.0 < start);
        if longer > length {
            let rest = (start + length, longer - length);
            self.by_start[place] = rest;
            self.shorter(at, (rest.1, rest.0));
        } else {
            self.by_start.remove(place);
            self.by_length.remove(at);
        }
        Some(start)
    }

    /// Frees granules that are taken.
    pub(crate) fn free(&mut self, start: u32, length: u32) {
        let place = self.by_start.partition_point(|run| run.0 < start);
        let after = self.by_start.get(place).copied();
        let after = after.filter(|run| run.0 == start + length);
        let before = place.checked_sub(1).map(|at| self.by_start[at]);
        let before = before.filter(|run| run.0 + run.1 == start);
        match (before, after) {
            (None, None) => {
                self.by_start.insert(place, (start, length));
                let run = (length, start);
                let at = self.by_length.partition_point(|it| *it < run);
                self.by_length.insert(at, run);
            }
            (None, Some(run)) => {
                self.by_start[place] = (start, length + run.1);
                self.longer(run, (length + run.1, start));
            }
            (Some(run), None) => {
                self.by_start[place - 1].1 += length;
                self.longer(run, (run.1 + length, run.0));
            }
            (Some(run), Some(other)) => {
                self.by_start.remove(place);
                self.by_length.remove(self.place_of(other));
                let all = run.1 + length + other.1;
                self.by_start[place - 1].1 = all;
                self.longer(run, (all, run.0));
            }
        }
    }

    /// Starts and lengths, in order; none if the arrays do not hold the same.
    pub(crate) fn all(&self) -> Option<&[(u32, u32)]> {
        let mut other: Vec<(u32, u32)> = self.by_length.iter().map(|&(a, b)| (b, a)).collect();
        let is_sorted = self.by_length.is_sorted();
        other.sort_unstable();
        (is_sorted && other == self.by_start).then_some(&self.by_start)
    }

    /// Where among the lengths this run is, which is given as start and length.
    fn place_of(&self, (start, length): (u32, u32)) -> usize {
        let run = (length, start);
        let at = self.by_length.partition_point(|it| *it < run);
        debug_assert_eq!(self.by_length[at], run, "a run without its length");
        at
    }

    /// The run at this place of the lengths becomes a shorter one.
    fn shorter(&mut self, at: usize, run: (u32, u32)) {
        let to = self.by_length[..at].partition_point(|it| *it < run);
        self.by_length.copy_within(to..at, to + 1);
        self.by_length[to] = run;
    }

    /// A run, given as start and length, becomes a longer one, given as length and start.
    fn longer(&mut self, run: (u32, u32), longer: (u32, u32)) {
        let at = self.place_of(run);
        let after = self.by_length[at + 1..].partition_point(|it| *it < longer);
        self.by_length.copy_within(at + 1..at + 1 + after, at);
        self.by_length[at + after] = longer;
    }
}
