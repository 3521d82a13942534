//! The cover of a range: the few maximal aligned buddies that make it up.
//!
//! A pure function of two numbers. The buddy tree splits and merges the same buddies implicitly; the
//! audit compares it with this.
//!
//! Invariants: the buddies are in order, adjoin, and make up exactly the range; each is aligned to
//! its own size; no two of them are each other's buddy (they would be one of the next order).

use std::ops::Range;

/// A power-of-two run of granules, aligned to its own length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buddy {
    /// Granules from the start of the segment; a multiple of [`Self::granules`].
    pub offset: u32,
    /// log2 of its length in granules.
    pub order: u32,
}

impl Buddy {
    /// Its length in granules.
    pub const fn granules(self) -> u32 {
        1 << self.order
    }

    /// The buddy that it would merge with.
    #[must_use]
    pub const fn buddy(self) -> Self {
        Self {
            offset: self.offset ^ self.granules(),
            order: self.order,
        }
    }
}

/// The maximal aligned buddies of a range of granules, from first to last: at most two of each
/// order, so at most `2 * log2(range)` of them. An empty range has none.
pub fn cover(range: Range<u32>) -> Cover {
    Cover {
        at: range.start,
        end: range.end,
    }
}

/// The iterator that [`cover`] returns.
#[derive(Clone, Debug)]
pub struct Cover {
    at: u32,
    end: u32,
}

impl Iterator for Cover {
    type Item = Buddy;

    fn next(&mut self) -> Option<Buddy> {
        let left = self.end.checked_sub(self.at).filter(|left| *left > 0)?;
        // As large as the alignment of its start and the rest of the range allow. The alignment of 0 is
        // unlimited: trailing_zeros gives 32, which ilog2 of a u32 never reaches.
        let order = self.at.trailing_zeros().min(left.ilog2());
        let buddy = Buddy {
            offset: self.at,
            order,
        };
        self.at += buddy.granules();
        Some(buddy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(range: Range<u32>) -> Vec<(u32, u32)> {
        cover(range)
            .map(|buddy| (buddy.offset, buddy.order))
            .collect()
    }

    #[test]
    fn known_covers() {
        assert_eq!(pairs(0..0), []);
        assert_eq!(pairs(7..7), []);
        assert_eq!(pairs(0..8), [(0, 3)]);
        assert_eq!(pairs(8..16), [(8, 3)]);
        assert_eq!(pairs(4..12), [(4, 2), (8, 2)]); // adjoining, but not each other's buddy
        assert_eq!(pairs(3..14), [(3, 0), (4, 2), (8, 2), (12, 1)]);
        assert_eq!(pairs(0..250_000).len(), 250_000u32.count_ones() as usize);
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is tested")]
    fn a_reversed_range_is_empty() {
        assert_eq!(pairs(9..4), []);
    }

    proptest! {
        #[test]
        fn a_cover_keeps_its_invariants(start in 0u32..100_000, length in 0u32..100_000) {
            let buddies: Vec<Buddy> = cover(start..start + length).collect();
            let mut at = start;
            for buddy in &buddies {
                prop_assert_eq!(buddy.offset, at);
                prop_assert_eq!(buddy.offset % buddy.granules(), 0);
                at += buddy.granules();
            }
            prop_assert_eq!(at, start + length);
            for pair in buddies.windows(2) {
                prop_assert_ne!(pair[0].buddy(), pair[1]);
            }
            for order in 0..32 {
                prop_assert!(buddies.iter().filter(|buddy| buddy.order == order).count() <= 2);
            }
        }
    }
}
