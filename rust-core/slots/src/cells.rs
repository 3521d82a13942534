//! Which parts of the planned regions are taken.
//!
//! The begins and ends of all slots cut a region into *cells*: no slot covers a part of one. So a slot is a run of
//! cells, and a word of bits says for 64 of them whether they are taken. Most slots are a few cells long.
//!
//! Invariants: a cell is taken by one block at most; only whole cells are taken. Knows no slot.

mod gaps;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::layout::{GRANULE, Layout};
use gaps::Gaps;

/// No cell is longer, so that what is lent does not take much more than it needs; but where that would be more cells than
/// so many in all regions, they are longer.
const LONGEST: usize = 1 << 18;
const MOST: usize = 1 << 14;

/// So many words are marked for what lanes want soon; what is wanted after that is as if nobody wanted it. That is tens of
/// thousands of long slots: more than any recorded program's lane wants, and no plan has each request wait for seconds.
const MOST_MARKED: usize = 1 << 22;

/// See the module's documentation. Cells are counted through all regions.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    /// Where each cell begins, in bytes from its region's begin; behind each region's cells, its length.
    starts: Vec<usize>,
    /// The cells of each region. One number lies between those of two regions, and is never free.
    regions: Vec<Range<u32>>,
    taken: Vec<u64>,
    /// How many cells of each region are taken.
    counts: Vec<u32>,
    gaps: Gaps,
}

/// A set of cells.
#[derive(Debug)]
pub(crate) struct Wanted(Vec<u64>);

impl Wanted {
    fn has(&self, cell: u32) -> bool {
        self.0[cell as usize / 64] >> (cell % 64) & 1 == 1
    }
}

impl Cells {
    /// All free. `short`: no cell is long.
    pub(crate) fn new(layout: &Layout, short: bool) -> Self {
        let mut bounds: Vec<Vec<usize>> = vec![vec![0]; layout.regions.len()];
        for slot in &layout.slots {
            bounds[slot.region as usize].extend([slot.offset, slot.offset + slot.bytes]);
        }
        let all: usize = layout.regions.iter().sum();
        let once = layout.comes_once();
        let longest = (all / MOST).next_multiple_of(GRANULE).max(if once { GRANULE } else { LONGEST });
        for (bounds, &length) in bounds.iter_mut().zip(&layout.regions) {
            if !short && !once {
                break;
            }
            bounds.extend((0..length).step_by(longest));
        }
        let mut starts = Vec::new();
        let mut regions = Vec::new();
        for (mut bounds, &length) in bounds.into_iter().zip(&layout.regions) {
            bounds.push(length);
            bounds.sort_unstable();
            bounds.dedup();
            let first = starts.len() as u32;
            starts.extend(bounds);
            regions.push(first..starts.len() as u32 - 1);
        }
        let (taken, counts) = (vec![0; starts.len().div_ceil(64)], vec![0; regions.len()]);
        Self { taken, counts, starts, regions, gaps: Gaps::default() }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// The cells of a range whose begin and end are those of cells.
    pub(crate) fn run(&self, region: u32, bytes: Range<usize>) -> Range<u32> {
        let of = &self.regions[region as usize];
        let starts = &self.starts[of.start as usize..=of.end as usize];
        let at = |byte| of.start + starts.partition_point(|&start| start < byte) as u32;
        at(bytes.start)..at(bytes.end)
    }

    /// Takes them, if all are free.
    #[inline]
    pub(crate) fn take(&mut self, region: u32, run: Range<u32>) -> bool {
        if let Some((word, mask)) = in_a_word(&run) {
            if self.taken[word] & mask != 0 {
                return false;
            }
            self.taken[word] |= mask;
        } else {
            if !self.words(&run).all(|(word, mask)| self.taken[word] & mask == 0) {
                return false;
            }
            for (word, mask) in self.words(&run) {
                self.taken[word] |= mask;
            }
        }
        self.counts[region as usize] += run.end - run.start;
        if self.gaps.change() {
            self.regap(region, &run, false);
        }
        true
    }

    /// Frees cells that are taken.
    #[inline]
    pub(crate) fn free(&mut self, region: u32, run: Range<u32>) {
        self.counts[region as usize] -= run.end - run.start;
        if let Some((word, mask)) = in_a_word(&run) {
            debug_assert_eq!(self.taken[word] & mask, mask, "freed twice");
            self.taken[word] &= !mask;
        } else {
            for (word, mask) in self.words(&run) {
                debug_assert_eq!(self.taken[word] & mask, mask, "freed twice");
                self.taken[word] &= !mask;
            }
        }
        if self.gaps.change() {
            self.regap(region, &run, true);
        }
    }

    /// Whether nothing lies in the region.
    pub(crate) fn is_idle(&self, region: u32) -> bool {
        self.counts[region as usize] == 0
    }

    /// Where a cell begins, in bytes from its region's begin.
    pub(crate) fn start(&self, cell: u32) -> usize {
        self.starts[cell as usize]
    }

    /// A run of free cells of the region that has `bytes` bytes: of all the one with the fewest cells among `wanted`,
    /// then the shortest, then the last; and how many those
    /// are. O(cells).
    pub(crate) fn find(&self, region: u32, bytes: usize, wanted: &Wanted) -> Option<(u32, Range<u32>)> {
        let of = self.regions[region as usize].clone();
        let mut best: Option<((u32, usize), Range<u32>)> = None;
        let (mut first, mut count) = (of.start, 0);
        for cell in of.clone() {
            if self.is_taken(cell) {
                (first, count) = (cell + 1, 0);
                continue;
            }
            count += u32::from(wanted.has(cell));
            // Without its first cells it may still be long enough.
            while self.start(cell + 1) - self.start(first + 1) >= bytes {
                count -= u32::from(wanted.has(first));
                first += 1;
            }
            let length = self.start(cell + 1) - self.start(first);
            let cost = (count, length);
            if length >= bytes && best.as_ref().is_none_or(|(least, _)| cost <= *least) {
                best = Some((cost, first..cell + 1));
            }
        }
        best.map(|((count, _), run)| (count, run))
    }

    /// A run of free cells of the region, none of which is `kept`, that has `bytes` bytes and `most` bytes at most: of all the one
    /// of which the fewest bytes are `wanted`, and how many those are. O(cells).
    pub(crate) fn cheapest(
        &self,
        region: u32,
        bytes: usize,
        most: usize,
        wanted: &Wanted,
        kept: &Wanted,
    ) -> Option<(usize, Range<u32>)> {
        let of = self.regions[region as usize].clone();
        let cost = |cell: u32| {
            let length = self.start(cell + 1) - self.start(cell);
            if wanted.has(cell) { length } else { 0 }
        };
        let mut best: Option<(usize, Range<u32>)> = None;
        let (mut first, mut sum) = (of.start, 0);
        for cell in of.clone() {
            if self.is_taken(cell) || kept.has(cell) {
                (first, sum) = (cell + 1, 0);
                continue;
            }
            sum += cost(cell);
            // Without its first cells it may still be long enough.
            while self.start(cell + 1) - self.start(first + 1) >= bytes {
                sum -= cost(first);
                first += 1;
            }
            let length = self.start(cell + 1) - self.start(first);
            let fits = (bytes..=most).contains(&length);
            if fits && best.as_ref().is_none_or(|(least, _)| sum < *least) {
                best = Some((sum, first..cell + 1));
            }
        }
        best
    }

    /// The begin of the shortest run of cells, free and not wanted, that has `bytes` bytes: as many cells as that takes, which
    /// have `most` bytes at most, and how long the run is. O(words and runs); O(log runs) where the runs are kept.
    pub(crate) fn best_fit(
        &self,
        region: u32,
        bytes: usize,
        most: usize,
        wanted: Option<&Wanted>,
    ) -> Option<(usize, Range<u32>)> {
        let enough = |Range { start, end }: Range<u32>| {
            let cells = &self.starts[start as usize + 1..=end as usize];
            let until = self.start(start) + bytes;
            let run = start..start + cells.partition_point(|&end| end < until) as u32 + 1;
            (self.length(&run) <= most).then_some(run)
        };
        if wanted.is_none() && self.gaps.is_kept() {
            let mut gaps = self.gaps.from(region, bytes);
            return gaps.find_map(|gap| Some((self.length(&gap), enough(gap)?)));
        }
        let mut best: Option<(usize, Range<u32>)> = None;
        for gap in self.free_runs(region, wanted) {
            let length = self.length(&gap);
            let is_shorter = best.as_ref().is_none_or(|(least, _)| length < *least);
            if length >= bytes
                && is_shorter
                && let Some(run) = enough(gap)
            {
                best = Some((length, run));
                if length == bytes {
                    break;
                }
            }
        }
        best
    }

    /// The runs of cells that are free and not wanted, in order.
    fn free_runs(&self, region: u32, wanted: Option<&Wanted>) -> impl Iterator<Item = Range<u32>> {
        let Range { start, end: last } = self.regions[region as usize];
        let mut end = start;
        std::iter::from_fn(move || {
            let first = self.next(region, end, true, wanted);
            end = self.next(region, first, false, wanted);
            (first < last).then_some(first..end)
        })
    }

    /// The next cell from here on that is, or is not, free and not wanted.
    #[inline]
    fn next(&self, region: u32, from: u32, is_free: bool, wanted: Option<&Wanted>) -> u32 {
        let end = self.regions[region as usize].end;
        let busy = |word: usize| self.taken[word] | wanted.map_or(0, |it| it.0[word]);
        let mut word = from as usize / 64;
        let mut mask = u64::MAX << (from % 64);
        while word * 64 < end as usize {
            let found = if is_free { !busy(word) } else { busy(word) } & mask;
            if found != 0 {
                return end.min(word as u32 * 64 + found.trailing_zeros());
            }
            (word, mask) = (word + 1, u64::MAX);
        }
        end
    }

    /// How many bytes some cells have.
    pub(crate) fn length(&self, run: &Range<u32>) -> usize {
        self.start(run.end) - self.start(run.start)
    }

    /// Which cells these runs cover.
    pub(crate) fn wanted(&self, runs: impl Iterator<Item = Range<u32>>) -> Wanted {
        let mut wanted = vec![0; self.taken.len()];
        let mut marked = 0;
        for run in runs {
            marked += run.len() / 64 + 1;
            if marked > MOST_MARKED {
                break;
            }
            for (word, mask) in self.words(&run) {
                wanted[word] |= mask;
            }
        }
        Wanted(wanted)
    }

    fn is_taken(&self, cell: u32) -> bool {
        self.taken[cell as usize / 64] >> (cell % 64) & 1 == 1
    }

    /// The words that these cells lie in, and which of their bits.
    #[inline]
    fn words(&self, run: &Range<u32>) -> impl Iterator<Item = (usize, u64)> + use<> {
        let Range { start, end } = run.clone();
        (start / 64..end.div_ceil(64)).map(move |word| {
            let from = start.max(word * 64) - word * 64;
            let to = end.min(word * 64 + 64) - word * 64;
            (word as usize, (u64::MAX >> (64 - (to - from))) << from)
        })
    }
}

/// The word in which all of these cells lie, and which of its bits they are; most slots are so short.
#[inline]
fn in_a_word(run: &Range<u32>) -> Option<(usize, u64)> {
    let length = run.end - run.start;
    let first = run.start % 64;
    // No run is empty.
    (first + length <= 64).then(|| {
        let bits = u64::MAX >> (64 - length);
        ((run.start / 64) as usize, bits << first)
    })
}
