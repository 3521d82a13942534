//! Expandable segments: for each stream and pool a range of addresses, of which as many pages are mapped as are needed.
//!
//! Pages are 2 MiB in the small pool and 20 MiB in the large one. A request that no free block serves goes to the lowest
//! addresses, free and unmapped ones together, that are long enough; what is unmapped of them is mapped in whole pages.
//! When the cache is emptied, whole pages of free blocks are unmapped.

use super::MIB;
use super::blocks::{Block, Id, Pool, State};
use super::torch::{SHARED, Torch};

/// Addresses of a range: enough for any program. PyTorch reserves 9/8 of the device's memory.
const RANGE: u64 = 1 << 50;

impl Pool {
    /// Bytes of a page.
    fn page(self) -> u64 {
        match self {
            Self::Small => 2 * MIB,
            Self::Large => SHARED,
        }
    }
}

impl Torch {
    /// A free block of at least so many bytes, in no list, with memory mapped for it.
    pub(super) fn expand(&mut self, pool: Pool, stream: u32, bytes: u64) -> Id {
        let mut candidate = self.roomiest(pool, stream, bytes);
        if self.blocks.get(candidate).state == State::Unmapped {
            let length = self.blocks.get(candidate).bytes.min(bytes);
            self.map(candidate, length);
        }
        while self.blocks.get(candidate).bytes < bytes {
            let block = self.blocks.get(candidate);
            let missing = bytes - block.bytes;
            let after = block.after.expect("room behind it, as was looked for");
            let length = self.blocks.get(after).bytes.min(missing);
            self.map(after, length);
            candidate = after;
        }
        self.blocks.unlist(candidate);
        candidate
    }

    /// The lowest block from which on so many bytes are free or unmapped; of a new range, if there is none.
    fn roomiest(&mut self, pool: Pool, stream: u32, bytes: u64) -> Id {
        let found = self.blocks.unmapped(pool, stream).find_map(|unmapped| {
            let before = self.blocks.get(unmapped).before;
            let first = before.filter(|it| self.is_idle(*it)).unwrap_or(unmapped);
            self.has_room(first, bytes).then_some(first)
        });
        found.unwrap_or_else(|| self.new_range(pool, stream))
    }

    fn is_idle(&self, id: Id) -> bool {
        matches!(self.blocks.get(id).state, State::Free | State::Unmapped)
    }

    fn has_room(&self, first: Id, bytes: u64) -> bool {
        let mut room = 0;
        let mut next = Some(first);
        while let Some(id) = next.filter(|it| room < bytes && self.is_idle(*it)) {
            let block = self.blocks.get(id);
            room += block.bytes;
            next = block.after;
        }
        room >= bytes
    }

    fn new_range(&mut self, pool: Pool, stream: u32) -> Id {
        let bytes = RANGE.next_multiple_of(pool.page());
        let address = self.reserve(bytes);
        let id = self.blocks.add(Block {
            address,
            bytes,
            stream,
            pool,
            state: State::Unmapped,
            range: Some(address),
            before: None,
            after: None,
        });
        self.blocks.list(id);
        id
    }

    /// Map the pages of the first `bytes` bytes of an unmapped block, and make one of it and its free neighbours.
    fn map(&mut self, id: Id, bytes: u64) {
        let block = *self.blocks.get(id);
        let mapped = bytes.next_multiple_of(block.pool.page());
        self.take(mapped, mapped / block.pool.page());
        self.blocks.unlist(id);
        if mapped < block.bytes {
            let rest = self.blocks.cut(id, mapped);
            self.blocks.list(rest);
        }
        self.blocks.get_mut(id).state = State::Free;
        self.blocks.merge(id);
        self.blocks.list(id);
    }

    /// Unmap the whole pages of a free block. A range with nothing mapped is gone.
    pub(super) fn unmap(&mut self, id: Id) {
        let block = *self.blocks.get(id);
        let (start, page) = (block.range.unwrap_or(0), block.pool.page());
        let first = start + (block.address - start).next_multiple_of(page);
        let end = block.address + block.bytes;
        let end = end - (end - start) % page;
        if first >= end {
            return;
        }
        self.blocks.unlist(id);
        let mut id = id;
        if first > block.address {
            let rest = self.blocks.cut(id, first - block.address);
            self.blocks.list(id);
            id = rest;
        }
        if end < block.address + block.bytes {
            let rest = self.blocks.cut(id, end - first);
            self.blocks.list(rest);
        }
        self.blocks.get_mut(id).state = State::Unmapped;
        self.blocks.merge(id);
        self.give_back(end - first, (end - first) / page);
        if self.blocks.get(id).is_whole() {
            self.blocks.forget(id);
        } else {
            self.blocks.list(id);
        }
    }
}
