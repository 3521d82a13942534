//! The driver under the allocator: how much the device has left, and at which addresses memory comes.

/// Where addresses begin.
const FIRST: u64 = 1 << 46;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Driver {
    left: u64,
    next: u64,
}

impl Driver {
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            left: capacity,
            next: FIRST,
        }
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

    /// What it can give.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    pub(super) fn give_back(&mut self, bytes: u64) {
        self.left = self.left.saturating_add(bytes);
    }

    /// Addresses that nothing else has: newer ones are higher, since ties between blocks of one size go by the age of
    /// their segments.
    pub(super) fn reserve(&mut self, bytes: u64) -> u64 {
        let address = self.next;
        // After 2^64 bytes of ranges they come again.
        self.next = self.next.wrapping_add(bytes);
        address
    }
}
