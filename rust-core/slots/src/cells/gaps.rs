//! The runs of free cells by their lengths: for who looks for the shortest that is long enough, again and again.
//!
//! To keep them costs each change of the cells more than to look at all runs costs a look. So they are kept only while
//! nearly as many look as cells change: where a run is not the recorded one, and most requests are lent what is idle.

use std::collections::BTreeSet;
use std::ops::Range;

use super::Cells;

/// A look outweighs so many changes. A request that is lent a place is a look, and a change now and another one when it is over:
/// so the runs are kept where most requests are.
const LOOK: u32 = 4;

/// With so much more weight the runs are kept, until nothing is left of twice as much.
const KEPT: u32 = 32;

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    weight: u32,
    is_kept: bool,
    /// The region, its bytes, its first cell and the one behind it.
    runs: BTreeSet<(u32, usize, u32, u32)>,
}

impl Gaps {
    /// The cells change. Returns whether the runs have to.
    #[inline]
    pub(super) fn change(&mut self) -> bool {
        self.weight = self.weight.saturating_sub(1);
        self.is_kept
    }

    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Runs of so many bytes or more, the shortest first, of equals the first.
    pub(super) fn from(&self, region: u32, bytes: usize) -> impl Iterator<Item = Range<u32>> {
        let runs = self.runs.range((region, bytes, 0, 0)..(region + 1, 0, 0, 0));
        runs.map(|it| it.2..it.3)
    }
}

impl Cells {
    /// Somebody looks for the shortest run that is free, wanted or not.
    pub(crate) fn looked(&mut self) {
        self.gaps.weight = (self.gaps.weight + LOOK).min(2 * KEPT);
        if !self.gaps.is_kept && self.gaps.weight >= KEPT {
            self.gaps.is_kept = true;
            for region in 0..self.regions.len() as u32 {
                let runs = self.free_runs(region, None).map(|run| self.gap(region, run));
                let runs: Vec<_> = runs.collect();
                self.gaps.runs.extend(runs);
            }
        }
    }

    /// These cells were freed, or taken.
    #[cold]
    pub(super) fn regap(&mut self, region: u32, run: &Range<u32>, is_free: bool) {
        if self.gaps.weight == 0 {
            self.gaps = Gaps::default();
            return;
        }
        let all = self.free_before(region, run.start)..self.next(region, run.end, false, None);
        let whole = self.gap(region, all.clone());
        let parts = [all.start..run.start, run.end..all.end];
        let parts = parts.map(|it| (!it.is_empty()).then(|| self.gap(region, it)));
        let runs = &mut self.gaps.runs;
        if is_free {
            for part in parts.iter().flatten() {
                runs.remove(part);
            }
            runs.insert(whole);
        } else {
            runs.remove(&whole);
            runs.extend(parts.into_iter().flatten());
        }
    }

    fn gap(&self, region: u32, run: Range<u32>) -> (u32, usize, u32, u32) {
        (region, self.length(&run), run.start, run.end)
    }

    /// Where the free cells begin that end before this one.
    fn free_before(&self, region: u32, cell: u32) -> u32 {
        let first = self.regions[region as usize].start;
        let mut word = cell as usize / 64;
        let mut mask = !(u64::MAX << (cell % 64));
        loop {
            let busy = self.taken[word] & mask;
            if busy != 0 {
                return first.max(word as u32 * 64 + 64 - busy.leading_zeros());
            }
            if word * 64 <= first as usize {
                return first;
            }
            (word, mask) = (word - 1, u64::MAX);
        }
    }
}
