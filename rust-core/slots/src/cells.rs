//! Which parts of the planned regions are taken.
//!
//! The begins and ends of all slots cut a region into *cells*: no slot covers a part of one. So a slot is a run of
//! cells, and a word of bits says for 64 of them whether they are taken. Most slots are a few cells long.
//!
//! Invariants: a cell is taken by one block at most; only whole cells are taken. Knows no slot.

use std::ops::Range;

use crate::layout::Layout;

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
    /// All free.
    pub(crate) fn new(layout: &Layout) -> Self {
        let mut bounds: Vec<Vec<usize>> = vec![vec![0]; layout.regions.len()];
        for slot in &layout.slots {
            bounds[slot.region as usize].extend([slot.offset, slot.offset + slot.bytes]);
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
        Self {
            taken: vec![0; starts.len().div_ceil(64)],
            counts: vec![0; regions.len()],
            starts,
            regions,
        }
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
        if !self
            .words(&run)
            .all(|(word, mask)| self.taken[word] & mask == 0)
        {
            return false;
        }
        for (word, mask) in self.words(&run) {
            self.taken[word] |= mask;
        }
        self.counts[region as usize] += run.end - run.start;
        true
    }

    /// Frees cells that are taken.
    #[inline]
    pub(crate) fn free(&mut self, region: u32, run: Range<u32>) {
        for (word, mask) in self.words(&run) {
            debug_assert_eq!(self.taken[word] & mask, mask, "freed twice");
            self.taken[word] &= !mask;
        }
        self.counts[region as usize] -= run.end - run.start;
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
    pub(crate) fn find(
        &self,
        region: u32,
        bytes: usize,
        wanted: &Wanted,
    ) -> Option<(u32, Range<u32>)> {
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

    /// Which cells these runs cover.
    pub(crate) fn wanted(&self, runs: impl Iterator<Item = Range<u32>>) -> Wanted {
        let mut wanted = vec![0; self.taken.len()];
        for run in runs {
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
