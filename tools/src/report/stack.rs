//! Puts memory that is pinned at the same time one upon another, for a picture: each piece as low as it fits.
//!
//! Invariants: pieces that are there at the same time do not overlap; gaps are what is free below the highest, each as long
//! as can be.

use std::collections::BTreeMap;

/// So many gaps are looked at: with a hundred thousand pieces, a picture may have holes in it.
const MOST_GAPS: usize = 4096;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Stack {
    /// Where a piece begins: where it ends.
    pieces: BTreeMap<u64, u64>,
    /// The same of gaps.
    gaps: BTreeMap<u64, u64>,
    /// Where the highest piece ends.
    top: u64,
    /// The highest end that ever was.
    pub(super) height: u64,
}

impl Stack {
    /// Puts a piece into the lowest gap that it fits, and returns where it begins.
    pub(super) fn put(&mut self, bytes: u64) -> u64 {
        let mut gaps = self.gaps.iter().take(MOST_GAPS);
        let gap = gaps.find(|(from, to)| *to - *from >= bytes);
        let gap = gap.map(|(&from, &to)| (from, to));
        let at = gap.map_or(self.top, |it| it.0);
        let end = at.saturating_add(bytes);
        if let Some((from, to)) = gap {
            self.gaps.remove(&from);
            if end < to {
                self.gaps.insert(end, to);
            }
        }
        self.pieces.insert(at, end);
        self.top = self.top.max(end);
        self.height = self.height.max(self.top);
        at
    }

    /// Takes away the piece that begins there.
    pub(super) fn take(&mut self, at: u64) {
        let Some(mut to) = self.pieces.remove(&at) else {
            return;
        };
        let mut from = at;
        let below = self.gaps.range(..=at).next_back();
        if let Some((&begin, _)) = below.filter(|it| *it.1 == at) {
            from = begin;
        }
        if let Some(end) = self.gaps.remove(&to) {
            to = end;
        }
        self.gaps.remove(&from);
        if to == self.top {
            self.top = from;
        } else if from < to {
            self.gaps.insert(from, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a list of who lies where, with sizes by chance.
    #[test]
    fn pieces_do_not_overlap_and_all_that_is_taken_away_is_a_gap_again() {
        let (mut stack, mut lying) = (Stack::default(), Vec::new());
        let mut number = 1_u64;
        for _ in 0..5_000 {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let chance = (number >> 33) as usize;
            if chance.is_multiple_of(3) && !lying.is_empty() {
                let (at, _) = lying.swap_remove(chance % lying.len());
                stack.take(at);
            } else {
                let bytes = 1 + (chance % 17) as u64;
                let at = stack.put(bytes);
                let apart = |it: &(u64, u64)| it.1 <= at || at + bytes <= it.0;
                assert!(lying.iter().all(apart));
                lying.push((at, at + bytes));
            }
        }
        for (at, _) in lying {
            stack.take(at);
        }
        assert!(stack.gaps.is_empty() && stack.pieces.is_empty() && stack.top == 0);
    }

    #[test]
    fn pieces_go_into_the_lowest_gap() {
        let mut stack = Stack::default();
        assert_eq!([4, 2, 3].map(|it| stack.put(it)), [0, 4, 6]);
        stack.take(4);
        assert_eq!(stack.put(3), 9, "the gap is of 2");
        assert_eq!(stack.put(1), 4);
        assert_eq!(stack.put(1), 5);
        stack.take(0);
        assert_eq!(stack.put(4), 0);
        assert_eq!(stack.height, 12);
    }
}
