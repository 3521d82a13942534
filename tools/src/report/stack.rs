//! Puts memory that is pinned at the same time one upon another, for a picture: each piece as low as it fits.
//!
//! Invariants: pieces that are there at the same time do not overlap; gaps are what is free below the highest, each as long
//! as can be.

use super::gaps::Runs;
use super::map::Placed;

/// So many gaps are looked at: with a hundred thousand pieces, a picture may have holes in it.
const MOST_GAPS: usize = 4096;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Stack {
    /// Gaps, and all above the highest piece.
    free: Runs,
    /// The highest end that ever was.
    pub(super) height: u64,
}

impl Default for Stack {
    fn default() -> Self {
        let mut free = Runs::default();
        free.pin(0, u64::MAX);
        Self { free, height: 0 }
    }
}

impl Stack {
    /// Puts a piece into the lowest gap that it fits, and returns where it begins.
    pub(super) fn put(&mut self, bytes: u64) -> u64 {
        let height = self.free.lowest(bytes, MOST_GAPS);
        self.free.take(Placed { height, bytes });
        self.height = self.height.max(height.saturating_add(bytes));
        height
    }

    /// Takes a piece away.
    pub(super) fn take(&mut self, height: u64, bytes: u64) {
        self.free.put(Placed { height, bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a list of who lies where, with sizes by chance.
    #[test]
    fn pieces_go_into_the_lowest_gap_and_all_that_is_taken_away_is_a_gap_again() {
        let (mut stack, mut lying) = (Stack::default(), Vec::new());
        let (mut number, mut height) = (1_u64, 0);
        for _ in 0..5_000 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let chance = (number >> 33) as usize;
            if chance.is_multiple_of(3) && !lying.is_empty() {
                let (at, end) = lying.remove(chance % lying.len());
                stack.take(at, end - at);
            } else {
                let bytes = 1 + (chance % 17) as u64;
                let (mut place, mut lowest) = (0, 0);
                while let Some(&(_, end)) = lying.get(place).filter(|it: &&(u64, u64)| it.0 < lowest + bytes) {
                    (place, lowest) = (place + 1, end);
                }
                assert_eq!(stack.put(bytes), lowest);
                lying.insert(place, (lowest, lowest + bytes));
                height = height.max(lowest + bytes);
            }
            assert_eq!(stack.height, height);
        }
        for (at, end) in lying {
            stack.take(at, end - at);
        }
        assert_eq!(stack.free.largest(), u64::MAX);
    }
}
