//! Which memory is whose: every device allocation and every page-locked range, by address.
//!
//! Pure bookkeeping: it maps and locks nothing. Ranges never overlap.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::pages;

/// What a range of memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// From `cudaHostAlloc` or `cudaMallocHost`.
    Host,
    /// Someone else's memory, made page-locked by `cudaHostRegister`.
    Registered,
    /// From `cudaMalloc`.
    Device,
    /// Device memory that `cuMemMap` put there. What touches is one range to copies, since a tensor may lie across.
    Mapped,
}

impl Kind {
    /// Whether it is a device's memory.
    pub(crate) fn is_device(self) -> bool {
        matches!(self, Self::Device | Self::Mapped)
    }
}

/// One range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) base: usize,
    pub(crate) bytes: usize,
    pub(crate) kind: Kind,
    /// The device that holds it, or that was current when the host memory was pinned.
    pub(crate) device: i32,
}

impl Region {
    fn end(&self) -> usize {
        self.base + self.bytes
    }

    fn page_locked(&self) -> bool {
        !self.kind.is_device()
    }

    /// Whether a copy may run on from this range into the one behind it. From one registration into another it may not,
    /// as seen on an H100 (driver 580).
    fn continues_in(&self, next: &Self) -> bool {
        self.kind == Kind::Mapped && next.kind == Kind::Mapped && next.device == self.device
    }
}

/// What the simulator knows about all of a range that a copy names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cover {
    /// Nothing: ordinary host memory.
    Pageable,
    /// All of it is in one page-locked range.
    PageLocked,
    /// All of it is in one device allocation, or in memory that is mapped without a gap.
    Device(i32),
    /// It starts in a known range and runs past its end, which CUDA refuses.
    Overrun,
}

/// All ranges.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    regions: BTreeMap<usize, Region>,
}

impl Registry {
    /// An empty registry.
    pub(crate) const fn new() -> Self {
        Self { regions: BTreeMap::new() }
    }

    /// Add a region, or give back the one that it overlaps.
    pub(crate) fn insert(&mut self, region: Region) -> Result<(), Region> {
        let before = self.regions.range(..region.end()).next_back();
        if let Some((_, other)) = before
            && other.end() > region.base
        {
            return Err(other.clone());
        }
        self.regions.insert(region.base, region);
        Ok(())
    }

    /// The region that holds an address.
    pub(crate) fn find(&self, address: usize) -> Option<&Region> {
        let (_, region) = self.regions.range(..=address).next_back()?;
        (address < region.end()).then_some(region)
    }

    /// The region that starts at an address.
    pub(crate) fn at(&self, base: usize) -> Option<&Region> {
        self.regions.get(&base)
    }

    /// Take the region that starts at an address out.
    pub(crate) fn remove(&mut self, base: usize) -> Option<Region> {
        self.regions.remove(&base)
    }

    /// What a range is. Only mapped memory counts as one where ranges touch.
    pub(crate) fn cover(&self, address: usize, bytes: usize) -> Cover {
        let Some(first) = self.find(address) else {
            return Cover::Pageable;
        };
        let end = address.saturating_add(bytes);
        let mut reached = first.end();
        while reached < end {
            match self.at(reached) {
                Some(next) if first.continues_in(next) => reached = next.end(),
                _ => break,
            }
        }
        match (reached >= end, first.kind) {
            (false, _) => Cover::Overrun,
            (true, Kind::Device | Kind::Mapped) => Cover::Device(first.device),
            (true, Kind::Host | Kind::Registered) => Cover::PageLocked,
        }
    }

    /// A page-locked region that a range has any part of.
    pub(crate) fn page_locked_in(&self, address: usize, bytes: usize) -> Option<&Region> {
        let before = self.regions.range(..address.saturating_add(bytes));
        let mut near = before.rev().map(|(_, region)| region);
        near.find(|region| region.page_locked()).filter(|region| region.end() > address)
    }

    /// The pages of a range that no page-locked region shares: what may be unlocked once the
    /// range is no longer registered.
    pub(crate) fn unshared_pages(&self, address: usize, bytes: usize) -> Range<usize> {
        let (start, length) = pages::span(address, bytes);
        let mut free = start..start + length;
        let shares = |page: usize| {
            self.regions
                .range(..page + pages::PAGE)
                .next_back()
                .is_some_and(|(_, region)| region.page_locked() && region.end() > page)
        };
        if !free.is_empty() && shares(free.start) {
            free.start += pages::PAGE;
        }
        if !free.is_empty() && shares(free.end - pages::PAGE) {
            free.end -= pages::PAGE;
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(base: usize, bytes: usize, kind: Kind) -> Region {
        Region { base, bytes, kind, device: 0 }
    }

    /// Regions of ten bytes each, one behind the other.
    fn row(base: usize, kinds: &[Kind]) -> Registry {
        let mut registry = Registry::new();
        for (base, kind) in (base..).step_by(10).zip(kinds) {
            registry.insert(region(base, 10, *kind)).unwrap();
        }
        registry
    }

    #[test]
    fn interior_addresses_are_found_overlaps_are_refused_and_neighbours_are_not() {
        let mut registry = row(100, &[Kind::Registered]);
        assert!(registry.find(99).is_none() && registry.find(110).is_none());
        assert_eq!(registry.find(109).unwrap().base, 100);
        assert!(registry.at(109).is_none());
        for (base, bytes) in [(100, 10), (95, 6), (109, 1), (90, 100)] {
            let other = registry.insert(region(base, bytes, Kind::Registered)).unwrap_err();
            assert_eq!(other.base, 100);
        }
        registry.insert(region(90, 10, Kind::Registered)).unwrap();
        registry.insert(region(110, 1, Kind::Registered)).unwrap();
    }

    #[test]
    fn a_copy_runs_from_no_allocation_or_registration_into_the_next() {
        let registry = row(100, &[Kind::Registered, Kind::Registered, Kind::Host, Kind::Device]);
        let inside = [100, 110, 120, 130].map(|base| registry.cover(base, 10));
        let (locked, device) = (Cover::PageLocked, Cover::Device(0));
        assert_eq!(inside, [locked, locked, locked, device]);
        for base in [100, 110, 120, 130] {
            assert_eq!(registry.cover(base + 9, 2), Cover::Overrun);
            assert_eq!(registry.cover(base, 11), Cover::Overrun);
        }
        assert_eq!(registry.cover(90, 20), Cover::Pageable);
    }

    #[test]
    fn cover_joins_touching_mappings_of_one_device() {
        let mut registry = row(100, &[Kind::Mapped, Kind::Mapped]);
        registry.insert(Region { device: 1, ..region(120, 10, Kind::Mapped) }).unwrap();
        registry.insert(region(130, 10, Kind::Device)).unwrap();
        assert_eq!(registry.cover(105, 15), Cover::Device(0));
        assert_eq!(registry.cover(105, 16), Cover::Overrun);
        assert_eq!(registry.cover(125, 6), Cover::Overrun);
    }

    #[test]
    fn a_page_shared_with_another_registration_stays_locked() {
        let mut registry = Registry::new();
        registry.insert(region(100, 50, Kind::Registered)).unwrap();
        assert_eq!(registry.unshared_pages(200, 8192), 4096..12288);
        assert_eq!(registry.unshared_pages(150, 10), 4096..4096);
        registry.remove(100).unwrap();
        assert_eq!(registry.unshared_pages(200, 8192), 0..12288);
    }
}
