//! The blocks of one segment, by the granule where they start.
//!
//! One `u32` a granule: 0 where no block starts, else the block's length and a flag for pending. That is
//! at most 0.1 % of the segment, and less in practice: the table is allocated as zeroed pages, and only
//! those where blocks start are touched. In return every lookup is one load.
//!
//! Does not know where memory is free.

use std::hint::black_box;

use crate::units::{GRANULE, Granules};

/// The state of a block that is not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The user has it.
    Live,
    /// The user freed it; events recorded on it are outstanding.
    Pending,
}

const PENDING: u32 = 1 << 31;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Records(Vec<u32>);

impl Records {
    /// No blocks in `granules` granules.
    pub(crate) fn new(granules: Granules) -> Self {
        Self(vec![0; granules.get() as usize])
    }

    /// Writes to each page, and changes nothing.
    pub(crate) fn touch(&mut self) {
        touch(&mut self.0);
    }

    /// The block that starts at granule `start`.
    #[inline]
    pub(crate) fn get(&self, start: Granules) -> Option<(Granules, State)> {
        let entry = *self.0.get(start.get() as usize)?;
        let state = if entry & PENDING == 0 { State::Live } else { State::Pending };
        (entry != 0).then(|| (Granules::new(entry & !PENDING), state))
    }

    /// Records a block of `length >= 1` granules at `start`, inside the segment.
    #[inline]
    pub(crate) fn set(&mut self, start: Granules, length: Granules, state: State) {
        debug_assert!(length.get() > 0 && length.get() < PENDING);
        let flag = if state == State::Pending { PENDING } else { 0 };
        self.0[start.get() as usize] = length.get() | flag;
    }

    /// Forgets the block at `start`, inside the segment.
    #[inline]
    pub(crate) fn clear(&mut self, start: Granules) {
        self.0[start.get() as usize] = 0;
    }

    /// All blocks from first to last: start, length, state. O(granules).
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Granules, Granules, State)> {
        (0u32..).zip(&self.0).filter(|(_, entry)| **entry != 0).map(|(start, entry)| {
            let state = if entry & PENDING == 0 { State::Live } else { State::Pending };
            (Granules::new(start), Granules::new(entry & !PENDING), state)
        })
    }
}

/// Writes to each page of a table, and changes nothing.
pub(crate) fn touch<T: Copy>(table: &mut [T]) {
    let in_a_page = (GRANULE / size_of::<T>()).max(1);
    for first in table.iter_mut().step_by(in_a_page) {
        *first = black_box(*first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn g(count: u32) -> Granules {
        Granules::new(count)
    }

    #[test]
    fn a_record_is_found_at_its_start_only() {
        let mut records = Records::new(g(10));
        records.set(g(3), g(4), State::Live);
        assert_eq!(records.get(g(3)), Some((g(4), State::Live)));
        for other in [0, 2, 4, 6, 9, 10, u32::MAX] {
            assert_eq!(records.get(g(other)), None, "{other}");
        }
    }

    #[test]
    fn touching_changes_nothing() {
        let mut records = Records::new(g(5000));
        records.set(g(1024), g(7), State::Live);
        records.touch();
        assert_eq!(records.iter().collect::<Vec<_>>(), [(g(1024), g(7), State::Live)]);
    }
}
