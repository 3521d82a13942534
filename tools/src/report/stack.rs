//! Puts memory that is pinned at the same time one upon another, for a picture: each piece as low as it fits.
//!
//! Invariant: pieces that are there at the same time do not overlap.

use std::collections::BTreeMap;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Stack {
    /// Where a piece begins: where it ends.
    pieces: BTreeMap<u64, u64>,
    /// The highest end that ever was.
    pub(super) height: u64,
}

impl Stack {
    /// Puts a piece into the lowest gap that it fits, and returns where it begins.
    pub(super) fn put(&mut self, bytes: u64) -> u64 {
        let mut at = 0;
        for (&from, &to) in &self.pieces {
            if from - at >= bytes {
                break;
            }
            at = to;
        }
        self.pieces.insert(at, at.saturating_add(bytes));
        self.height = self.height.max(at.saturating_add(bytes));
        at
    }

    /// Takes away the piece that begins there.
    pub(super) fn take(&mut self, at: u64) {
        self.pieces.remove(&at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
