//! What a pointer is, and device allocation: the process's registry, behind its lock.
//!
//! Nothing is mapped, locked or waited for while that lock is held.

use std::ops::Range;
use std::sync::Mutex;

use crate::error::{Error, Status, lock};
use crate::pages;
use crate::registry::{Cover, Kind, Region, Registry};
use crate::{device, waiting};

static REGISTRY: Mutex<Registry> = Mutex::new(Registry::new());

/// `cudaMalloc`: memory of the current device.
pub(crate) fn device_alloc(bytes: usize) -> Status<usize> {
    let device = device::activate_current()?;
    if bytes == 0 {
        return Ok(0);
    }
    let length = pages::round_up(bytes).ok_or(Error::cudaErrorMemoryAllocation)?;
    device::take_memory(device, length)?;
    let region = pages::map(length, pages::Like::Ordinary)
        .map(|base| Region { base, bytes: length, kind: Kind::Device, device })
        .map_err(|_| Error::cudaErrorMemoryAllocation);
    let added = region.and_then(|region| {
        let base = region.base;
        insert(region).map(|()| base).map_err(|_| Error::cudaErrorUnknown)
    });
    if added.is_err() {
        device::give_memory(device, length);
    }
    added
}

/// `cudaFree`: waits for the device, then gives its memory back.
pub(crate) fn device_free(address: usize) -> Status {
    device::activate_current()?;
    if address == 0 {
        return Ok(());
    }
    of_kind(address, Kind::Device).ok_or(Error::cudaErrorInvalidValue)?;
    waiting::synchronize_all()?;
    release_device(address);
    Ok(())
}

/// Give a device allocation back without waiting; what is none is ignored.
pub(crate) fn release_device(address: usize) {
    if let Some(region) = remove(address, Kind::Device) {
        pages::unmap(region.base, region.bytes);
        device::give_memory(region.device, region.bytes);
    }
}

/// The known region that holds an address.
pub(crate) fn find(address: usize) -> Option<Region> {
    lock(&REGISTRY).find(address).cloned()
}

/// Add a region, or give back the one that it overlaps.
pub(crate) fn insert(region: Region) -> Result<(), Region> {
    lock(&REGISTRY).insert(region)
}

/// Whether an address is in page-locked memory.
pub(crate) fn is_page_locked(address: usize) -> bool {
    find(address).is_some_and(|region| !region.kind.is_device())
}

/// Page-locked memory in a range.
pub(crate) fn page_locked_in(address: usize, bytes: usize) -> Option<Region> {
    lock(&REGISTRY).page_locked_in(address, bytes).cloned()
}

/// The pages of a range that no page-locked region shares.
pub(crate) fn unshared_pages(address: usize, bytes: usize) -> Range<usize> {
    lock(&REGISTRY).unshared_pages(address, bytes)
}

/// Whether an address starts a device allocation.
pub(crate) fn is_device_allocation(address: usize) -> bool {
    of_kind(address, Kind::Device).is_some()
}

/// What a range is.
pub(crate) fn cover(address: usize, bytes: usize) -> Cover {
    lock(&REGISTRY).cover(address, bytes)
}

/// The region of a kind that starts at an address.
pub(crate) fn of_kind(address: usize, kind: Kind) -> Option<Region> {
    lock(&REGISTRY).at(address).filter(|region| region.kind == kind).cloned()
}

/// Take the region of a kind that starts at an address out.
pub(crate) fn remove(address: usize, kind: Kind) -> Option<Region> {
    let mut registry = lock(&REGISTRY);
    registry.at(address).filter(|region| region.kind == kind)?;
    registry.remove(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_memory::{host_free, host_register};

    #[test]
    fn device_memory_is_never_page_locked_and_has_an_end() {
        let address = device_alloc(100).unwrap();
        assert_eq!(cover(address, 4096), Cover::Device(0));
        assert_eq!(host_register(address, 10), Err(Error::cudaErrorInvalidValue));
        assert_eq!(host_free(address), Err(Error::cudaErrorInvalidValue));
        assert_eq!(device_free(address + 1), Err(Error::cudaErrorInvalidValue));
        device_free(address).unwrap();
        assert_eq!(device_alloc(1 << 50), Err(Error::cudaErrorMemoryAllocation));
    }
}
