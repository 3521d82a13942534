//! What is reserved, what physical memory there is, and which of it is mapped where.
//!
//! Pure bookkeeping: maps nothing and takes no device's memory. Invariants: reservations do not overlap; a mapping
//! lies in one reservation and in one piece of physical memory; mappings do not overlap; physical memory goes when
//! neither a handle nor a mapping refers to it.

use std::collections::BTreeMap;

use crate::error::{Error, Status};

/// What sizes and addresses are multiples of.
pub(crate) const GRANULARITY: usize = 2 << 20;

/// A piece of physical memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Physical {
    pub(crate) device: i32,
    pub(crate) bytes: usize,
    /// Where it lies in the file that holds all physical memory.
    pub(crate) offset: usize,
    /// Kinds of handles that it may be exported as.
    pub(crate) exported_as: u32,
    /// How often its handle is to be released yet.
    owners: usize,
    mappings: usize,
}

/// Physical memory at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) base: usize,
    pub(crate) bytes: usize,
    pub(crate) handle: u64,
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Book {
    reserved: BTreeMap<usize, usize>,
    physical: BTreeMap<u64, Physical>,
    mapped: BTreeMap<usize, Mapping>,
    last_handle: u64,
    end: usize,
}

impl Book {
    /// An empty book.
    pub(crate) const fn new() -> Self {
        Self { reserved: BTreeMap::new(), physical: BTreeMap::new(), mapped: BTreeMap::new(), last_handle: 0, end: 0 }
    }

    /// Note a reservation.
    pub(crate) fn reserve(&mut self, base: usize, bytes: usize) {
        self.reserved.insert(base, bytes);
    }

    /// Forget a reservation, which must be named whole and hold no mapping.
    pub(crate) fn unreserve(&mut self, base: usize, bytes: usize) -> Status {
        let whole = self.reserved.get(&base) == Some(&bytes);
        if !whole || self.mapped.range(base..base + bytes).next().is_some() {
            return Err(Error::cudaErrorInvalidValue);
        }
        self.reserved.remove(&base);
        Ok(())
    }

    /// Note physical memory, which gets a handle and a place in the file.
    pub(crate) fn create(&mut self, device: i32, bytes: usize, exported_as: u32) -> u64 {
        self.last_handle += 1;
        let physical = Physical { device, bytes, offset: self.end, exported_as, owners: 1, mappings: 0 };
        self.end += bytes;
        self.physical.insert(self.last_handle, physical);
        self.last_handle
    }

    /// How long the file must be.
    pub(crate) fn file_length(&self) -> usize {
        self.end
    }

    /// What a handle names.
    pub(crate) fn physical(&self, handle: u64) -> Status<Physical> {
        let known = self.physical.get(&handle).filter(|it| it.owners > 0);
        known.copied().ok_or(Error::cudaErrorInvalidResourceHandle)
    }

    /// A handle is released; answers the memory if nothing refers to it any more.
    pub(crate) fn release(&mut self, handle: u64) -> Status<Option<Physical>> {
        self.physical(handle)?;
        Ok(self.drop_reference(handle, |it| it.owners -= 1))
    }

    /// The handle of what is mapped at an address, which must be released once more.
    pub(crate) fn retain(&mut self, address: usize) -> Status<u64> {
        let found = self.mapped.range(..=address).next_back();
        let mapping = found
            .map(|(_, mapping)| *mapping)
            .filter(|it| address < it.base + it.bytes)
            .ok_or(Error::cudaErrorInvalidValue)?;
        if let Some(physical) = self.physical.get_mut(&mapping.handle) {
            physical.owners += 1;
        }
        Ok(mapping.handle)
    }

    /// Map physical memory from its beginning on; answers it.
    pub(crate) fn map(&mut self, mapping: Mapping) -> Status<Physical> {
        let physical = self.physical(mapping.handle)?;
        let end = mapping.base.checked_add(mapping.bytes).ok_or(Error::cudaErrorInvalidValue)?;
        let reserved = self.reserved.range(..=mapping.base).next_back();
        let inside = reserved.is_some_and(|(base, bytes)| end <= base + bytes);
        let before = self.mapped.range(..end).next_back();
        let free = before.is_none_or(|(_, other)| other.base + other.bytes <= mapping.base);
        if !aligned(mapping.base, mapping.bytes) || mapping.bytes > physical.bytes || !inside || !free {
            return Err(Error::cudaErrorInvalidValue);
        }
        self.mapped.insert(mapping.base, mapping);
        if let Some(it) = self.physical.get_mut(&mapping.handle) {
            it.mappings += 1;
        }
        Ok(physical)
    }

    /// The mappings that a range consists of, each whole, with their device.
    pub(crate) fn tiles(&self, base: usize, bytes: usize) -> Status<Vec<(Mapping, i32)>> {
        let end = base.checked_add(bytes).filter(|_| aligned(base, bytes)).ok_or(Error::cudaErrorInvalidValue)?;
        let mut reached = base;
        let mut tiles = Vec::new();
        for mapping in self.mapped.range(base..end).map(|(_, mapping)| *mapping) {
            if mapping.base != reached {
                break;
            }
            reached += mapping.bytes;
            let physical = self.physical.get(&mapping.handle);
            tiles.push((mapping, physical.map_or(0, |it| it.device)));
        }
        if reached == end { Ok(tiles) } else { Err(Error::cudaErrorInvalidValue) }
    }

    /// A mapping is gone; answers the memory if nothing refers to it any more.
    pub(crate) fn unmap(&mut self, mapping: Mapping) -> Option<Physical> {
        self.mapped.remove(&mapping.base)?;
        self.drop_reference(mapping.handle, |it| it.mappings -= 1)
    }

    fn drop_reference(&mut self, handle: u64, change: impl FnOnce(&mut Physical)) -> Option<Physical> {
        let physical = self.physical.get_mut(&handle)?;
        change(physical);
        if physical.owners + physical.mappings > 0 {
            return None;
        }
        self.physical.remove(&handle)
    }
}

/// Whether a range is some, and of whole units.
pub(crate) fn aligned(base: usize, bytes: usize) -> bool {
    bytes > 0 && base.is_multiple_of(GRANULARITY) && bytes.is_multiple_of(GRANULARITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: usize = GRANULARITY;

    fn at(base: usize, bytes: usize, handle: u64) -> Mapping {
        Mapping { base: base * UNIT, bytes: bytes * UNIT, handle }
    }

    #[test]
    fn memory_lives_as_long_as_a_handle_or_a_mapping() {
        let mut book = Book::new();
        book.reserve(8 * UNIT, 8 * UNIT);
        let handle = book.create(0, 2 * UNIT, 0);
        book.map(at(8, 2, handle)).unwrap();
        assert_eq!(book.retain(9 * UNIT + 5), Ok(handle));
        assert_eq!(book.release(handle), Ok(None));
        assert_eq!(book.release(handle), Ok(None));
        let gone = Err(Error::cudaErrorInvalidResourceHandle);
        assert_eq!(book.release(handle), gone, "twice");
        assert_eq!(book.unmap(at(8, 2, handle)).unwrap().bytes, 2 * UNIT);
        assert_eq!(book.retain(9 * UNIT), Err(Error::cudaErrorInvalidValue));
        let second = book.create(1, UNIT, 0);
        let physical = book.release(second).unwrap().unwrap();
        assert_eq!((physical.device, physical.offset), (1, 2 * UNIT));
    }

    #[test]
    fn mappings_lie_in_a_reservation_and_beside_each_other() {
        let mut book = Book::new();
        book.reserve(8 * UNIT, 4 * UNIT);
        let handle = book.create(0, 2 * UNIT, 0);
        let refused = Err(Error::cudaErrorInvalidValue);
        for (base, bytes) in [(7, 1), (11, 2), (8, 3), (8, 0)] {
            assert_eq!(book.map(at(base, bytes, handle)), refused, "{base} {bytes}");
        }
        book.map(at(9, 2, handle)).unwrap();
        assert_eq!(book.map(at(8, 2, handle)), refused);
        assert_eq!(book.map(at(10, 1, handle)), refused);
        book.map(at(11, 1, handle)).unwrap();
        assert_eq!(book.tiles(9 * UNIT, 3 * UNIT).unwrap().len(), 2);
        assert_eq!(book.tiles(9 * UNIT, UNIT), refused.map(|_| vec![]));
        assert_eq!(book.tiles(8 * UNIT, 2 * UNIT), refused.map(|_| vec![]));
        assert_eq!(book.unreserve(8 * UNIT, 4 * UNIT), refused.map(|_| ()));
        assert_eq!(book.unmap(at(9, 2, handle)), None);
        assert_eq!(book.unmap(at(11, 1, handle)), None);
        assert_eq!(book.unreserve(8 * UNIT, UNIT), refused.map(|_| ()));
        book.unreserve(8 * UNIT, 4 * UNIT).unwrap();
    }
}
