//! A node of the buddy tree: a summary of its granules, and how summaries combine.
//!
//! A node sums up the free runs of its granules. If their pattern is *plain*, that is, if free and
//! taken change at most twice from its start to its end, the node describes them completely, and
//! nothing below it is read:
//!
//! ```text
//!   Ends    [free prefix | taken | free suffix]    either may be empty; wholly free, wholly taken
//!   Middle  [taken | free | taken]
//!   Mixed   anything else: ask the children
//! ```
//!
//! Pure functions on numbers; knows nothing of trees, segments or blocks. Lengths are granules.
//!
//! Invariants: a plain pattern is never called mixed, so equal granules give equal nodes; a wholly
//! free node is `Ends`, and its prefix, suffix and longest run are its length.

use crate::word::{WORD, longest_run, mask};
use std::ops::Range;

/// See the module's documentation. 16 bytes: four siblings in a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// The longest free run.
    pub(crate) longest: u32,
    /// The free run at its start.
    pub(crate) prefix: u32,
    /// The free run at its end.
    pub(crate) suffix: u32,
    /// [`ENDS`], [`MIXED`], or for `Middle` where the free run starts, counted from the node's
    /// start; that run is then `longest`.
    shape: u32,
}

/// Free at its prefix and its suffix, and taken between them. 0, so that a wholly taken node is all zero
/// bytes and a new tree is allocated as untouched pages; `Middle` never starts at 0.
const ENDS: u32 = 0;
const MIXED: u32 = u32::MAX;

/// A node as two machine words, as the tree stores and passes it. It then stays in registers: four
/// fields would go through memory, written in quarters and read as a whole, a stall that costs more than
/// the rest of a level. And a vector of integer tuples that are 0 is allocated as untouched pages.
pub(crate) type Packed = (u64, u64);

impl Node {
    #[inline(always)]
    pub(crate) fn pack(self) -> Packed {
        let Self { longest, prefix, suffix, shape } = self;
        let pack = |low, high| u64::from(low) | u64::from(high) << 32;
        (pack(longest, prefix), pack(suffix, shape))
    }

    #[inline(always)]
    pub(crate) fn unpack((first, second): Packed) -> Self {
        let (longest, prefix) = (first as u32, (first >> 32) as u32);
        let (suffix, shape) = (second as u32, (second >> 32) as u32);
        Self { longest, prefix, suffix, shape }
    }

    /// Nothing is free.
    pub(crate) const TAKEN: Self = Self { longest: 0, prefix: 0, suffix: 0, shape: ENDS };

    /// All `length` granules are free.
    #[inline]
    pub(crate) const fn free(length: u32) -> Self {
        Self { longest: length, prefix: length, suffix: length, shape: ENDS }
    }

    /// Free at both ends, of `length` granules in all.
    #[inline]
    fn ends(prefix: u32, suffix: u32, length: u32) -> Self {
        if prefix + suffix == length {
            return Self::free(length);
        }
        Self { longest: prefix.max(suffix), prefix, suffix, shape: ENDS }
    }

    /// Free from `from` to `to`, perhaps nowhere, of `length` granules in all.
    #[inline]
    fn interval(from: u32, to: u32, length: u32) -> Self {
        if from == to {
            Self::TAKEN
        } else if from == 0 {
            Self::ends(to, 0, length)
        } else if to == length {
            Self::ends(0, length - from, length)
        } else {
            Self { longest: to - from, prefix: 0, suffix: 0, shape: from }
        }
    }

    /// The node of a bitmap word.
    #[inline]
    pub(crate) fn of_word(word: u64) -> Self {
        if word == u64::MAX {
            return Self::free(WORD);
        }
        let (prefix, suffix) = (word.trailing_ones(), word.leading_ones());
        // By shifts, not by counting bits: the x86-64 baseline has no popcnt.
        let rest = word & !mask(0, prefix) & !mask(WORD - suffix, WORD);
        if rest == 0 {
            return Self { longest: prefix.max(suffix), prefix, suffix, shape: ENDS };
        }
        let from = rest.trailing_zeros();
        let run = rest >> from;
        if prefix + suffix == 0 && run & (run + 1) == 0 {
            return Self { longest: run.trailing_ones(), prefix, suffix, shape: from };
        }
        Self { longest: longest_run(word), prefix, suffix, shape: MIXED }
    }

    /// The bitmap word of a plain node.
    #[inline]
    pub(crate) fn to_word(self) -> u64 {
        match self.shape {
            ENDS => mask(0, self.prefix) | mask(WORD - self.suffix, WORD),
            from => mask(from, from + self.longest),
        }
    }

    /// The node of `2 * half` granules whose halves are `left` and `right`. Two wholly free
    /// halves make a wholly free whole: this is where buddies merge (I3).
    #[inline]
    pub(crate) fn join(left: Self, right: Self, half: u32) -> Self {
        let longest = left.longest.max(right.longest).max(left.suffix + right.prefix);
        let prefix = left.prefix + if left.prefix == half { right.prefix } else { 0 };
        let suffix = right.suffix + if right.suffix == half { left.suffix } else { 0 };
        let shape = if longest == 2 * half {
            ENDS
        } else if left.is_mixed() || right.is_mixed() {
            MIXED
        } else {
            let free = left.plain_free(half) + right.plain_free(half);
            if free == prefix + suffix {
                ENDS
            } else if prefix + suffix == 0 && free == longest {
                // One run, at neither end: in the left half, in the right one, or across.
                match (left.longest, left.shape, right.shape) {
                    (0, _, from) => half + from, // 0 is ENDS: a prefix of the right half
                    (_, ENDS, _) => half - left.suffix,
                    (_, from, _) => from,
                }
            } else {
                MIXED
            }
        };
        Self { longest, prefix, suffix, shape }
    }

    /// The two halves of a plain node of `2 * half` granules.
    #[inline]
    pub(crate) fn split(self, half: u32) -> [Self; 2] {
        debug_assert!(!self.is_mixed());
        if self.longest == 2 * half {
            return [Self::free(half); 2];
        }
        if self.shape == ENDS {
            let left = if self.prefix >= half {
                Self::free(half)
            } else {
                Self::ends(self.prefix, self.suffix.saturating_sub(half), half)
            };
            let right = if self.suffix >= half {
                Self::free(half)
            } else {
                Self::ends(self.prefix.saturating_sub(half), self.suffix, half)
            };
            return [left, right];
        }
        let (from, to) = (self.shape, self.shape + self.longest);
        let left = Self::interval(from.min(half), to.min(half), half);
        let right = Self::interval(from.max(half) - half, to.max(half) - half, half);
        [left, right]
    }

    /// The node once `from..to`, which is free and not empty, is taken; `None` if that would not be
    /// plain, so that the children must be read.
    #[inline]
    pub(crate) fn taking(self, from: u32, to: u32, length: u32) -> Option<Self> {
        let Self { longest, prefix, suffix, shape } = self;
        match shape {
            MIXED => None,
            ENDS if longest == length => Some(Self::ends(from, length - to, length)),
            ENDS if to == prefix => Some(Self::ends(from, suffix, length)),
            ENDS if from == length - suffix => Some(Self::ends(prefix, length - to, length)),
            ENDS if from == 0 && suffix == 0 => Some(Self::interval(to, prefix, length)),
            ENDS if to == length && prefix == 0 => Some(Self::interval(length - suffix, from, length)),
            ENDS => None,
            start if from == start => Some(Self::interval(to, start + longest, length)),
            start if to == start + longest => Some(Self::interval(start, from, length)),
            _ => None,
        }
    }

    /// The node once `from..to`, which is taken and not empty, is free; `None` if that would not be
    /// plain.
    #[inline]
    pub(crate) fn freeing(self, from: u32, to: u32, length: u32) -> Option<Self> {
        let Self { longest, prefix, suffix, shape } = self;
        match shape {
            MIXED => None,
            ENDS if longest == 0 => Some(Self::interval(from, to, length)),
            ENDS if from == prefix && to == length - suffix => Some(Self::free(length)),
            ENDS if from == prefix => Some(Self::ends(to, suffix, length)),
            ENDS if to == length - suffix => Some(Self::ends(prefix, length - from, length)),
            ENDS => None,
            start if to == start => Some(Self::interval(from, start + longest, length)),
            start if from == start + longest => Some(Self::interval(start, to, length)),
            _ => None,
        }
    }

    /// Where the longest run of a plain node of `length` granules starts; the first of equals.
    #[inline]
    pub(crate) fn start_of_longest(self, length: u32) -> u32 {
        match self.shape {
            ENDS if self.prefix >= self.suffix => 0,
            ENDS => length - self.suffix,
            from => from,
        }
    }

    /// Whether its pattern is not plain, so that its children must be read.
    #[inline]
    pub(crate) fn is_mixed(self) -> bool {
        self.shape == MIXED
    }

    /// The free runs of a plain node of `length` granules, empty ones included. For the audit.
    pub(crate) fn plain_runs(self, length: u32) -> [Range<u32>; 2] {
        match self.shape {
            ENDS if self.longest == length => [0..length, length..length],
            ENDS => [0..self.prefix, length - self.suffix..length],
            from => [from..from + self.longest, length..length],
        }
    }

    /// Free granules of a plain node of `length` granules.
    #[inline]
    fn plain_free(self, length: u32) -> u32 {
        match self.shape {
            ENDS if self.longest == length => length,
            ENDS => self.prefix + self.suffix,
            _ => self.longest,
        }
    }

    /// For tests of the audit: the same sums, called mixed.
    #[cfg(test)]
    pub(crate) fn corrupt_mixed(self) -> Self {
        Self { shape: MIXED, ..self }
    }

    /// For tests of the audit: any sums.
    #[cfg(test)]
    pub(crate) fn corrupt_sums(self, longest: u32, prefix: u32, suffix: u32) -> Self {
        Self { longest, prefix, suffix, ..self }
    }
}

#[cfg(test)]
mod tests;
