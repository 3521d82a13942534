//! Which dedicated region serves a request: the smallest idle one that holds it.
//!
//! Regions longer than a segment serve one block at a time, for a request that no segment holds. Those
//! without a block are indexed here by size, then age. Knows regions as numbers only; the arena reports
//! which became idle, and has an index for each home. Lookup and update are O(log n).
//!
//! Invariant: it holds every idle dedicated region once, and nothing else (audited).

use crate::units::Granules;
use std::collections::BTreeSet;

/// An idle dedicated region. Ordered by size, then age: of equal ones the oldest serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fit {
    pub(crate) granules: Granules,
    /// The number of its adoption: the older region has the lower one.
    pub(crate) age: u64,
    /// The arena's slot.
    pub(crate) slot: u32,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct IdleDedicated {
    fits: BTreeSet<Fit>,
}

impl IdleDedicated {
    /// The smallest region of `least..=most` granules.
    #[inline]
    pub(crate) fn find(&self, least: Granules, most: Granules) -> Option<Fit> {
        let from = Fit { granules: least, age: 0, slot: 0 };
        let best = *self.fits.range(from..).next()?;
        (best.granules <= most).then_some(best)
    }

    /// The region has no block now, or is new.
    pub(crate) fn insert(&mut self, fit: Fit) {
        self.fits.insert(fit);
    }

    /// The region has a block now, or is unpinned. Returns whether it was in the index: it must have
    /// been.
    pub(crate) fn remove(&mut self, fit: &Fit) -> bool {
        self.fits.remove(fit)
    }

    /// All of them, the smallest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Fit> {
        self.fits.iter()
    }
}
