//! Which allocator has a block. One looks at its streams when it is asked for memory, and there are two: ours, and
//! PyTorch's own, which has the requests below the threshold and the private ones.

use std::collections::HashSet;

use crate::advise::world::Counts;

pub(super) const ALLOCATORS: usize = 2;

pub(super) struct Whose {
    threshold: u64,
    /// Private blocks.
    private: HashSet<u64>,
}

impl Whose {
    pub(super) fn new(counts: &Counts) -> Self {
        Self {
            threshold: counts.threshold,
            private: HashSet::new(),
        }
    }

    /// A request was served; which allocator was asked.
    pub(super) fn asked(&mut self, id: u64, bytes: u64, private: bool) -> usize {
        if private {
            self.private.insert(id);
        }
        self.of(id, bytes)
    }

    /// Which allocator has it.
    pub(super) fn of(&self, id: u64, bytes: u64) -> usize {
        usize::from(bytes < self.threshold || self.private.contains(&id))
    }
}
