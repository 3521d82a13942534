//! The driver under the allocator: how much the device has left, and at which addresses memory comes.

use std::collections::VecDeque;

/// Where addresses begin.
const FIRST: u64 = 1 << 46;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Driver {
    left: u64,
    next: u64,
    /// Addresses that segments had in a real run, in the order in which they were asked for, with their lengths.
    seen: VecDeque<(u64, u64)>,
}

impl Driver {
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            left: capacity,
            next: FIRST,
            seen: VecDeque::new(),
        }
    }

    /// Addresses for segments to come: `(address, bytes)`.
    pub(super) fn expect(&mut self, seen: impl IntoIterator<Item = (u64, u64)>) {
        self.seen.extend(seen);
    }

    /// Take memory; false if there is not so much.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    pub(super) fn give_back(&mut self, bytes: u64) {
        self.left = self.left.saturating_add(bytes);
    }

    /// An address for a segment. Ties between blocks of one size go by it.
    pub(super) fn address(&mut self, bytes: u64) -> u64 {
        if let Some((address, _)) = self.seen.pop_front_if(|it| it.1 == bytes) {
            return address;
        }
        self.reserve(bytes)
    }

    /// Addresses that nothing else has.
    pub(super) fn reserve(&mut self, bytes: u64) -> u64 {
        let address = self.next;
        self.next += bytes;
        address
    }
}
