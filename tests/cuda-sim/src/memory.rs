//! Pinning, device allocation and what a pointer is: the registry and the pages under it, together.
//!
//! The slow part of a pin (the kernel locking pages) happens outside the registry's lock, so pins
//! of different threads overlap, as they may with a driver.

use std::sync::Mutex;

use crate::error::{Error, Status, lock};
use crate::pages;
use crate::registry::{Cover, Kind, Region, Registry};
use crate::stats::STATS;
use crate::{capture_rules, device, note, pins, waiting};

static REGISTRY: Mutex<Registry> = Mutex::new(Registry::new());
/// `cudaHostAlloc`: fresh page-locked memory.
pub(crate) fn host_alloc(bytes: usize, flags: u32) -> Status<usize> {
    capture_rules::unsafe_call()?;
    device::activate_current()?;
    if bytes == 0 {
        return Ok(0);
    }
    let length = pages::round_up(bytes).ok_or(Error::cudaErrorMemoryAllocation)?;
    pins::count(length)?;
    let address = match pages::map(length, false) {
        Ok(address) => address,
        Err(_) => return Err(pins::refuse(length, Error::cudaErrorMemoryAllocation)),
    };
    if let Err(error) = pages::lock(address, length) {
        pages::unmap(address, length);
        pins::explain_lock_limit(&error, length);
        return Err(pins::refuse(length, Error::cudaErrorMemoryAllocation));
    }
    let region = Region {
        base: address,
        bytes: length,
        kind: Kind::Host,
        device: device::current(),
        flags,
    };
    // A mapping that the kernel gave just now cannot overlap a live one, unless someone unmapped
    // memory that is still registered; that stale entry gives way.
    let mut registry = lock(&REGISTRY);
    while let Err(stale) = registry.insert(region.clone()) {
        registry.remove(stale.base);
        if stale.kind != Kind::Device {
            pins::uncount(stale.bytes);
        }
    }
    drop(registry);
    STATS.host_allocs.add(1);
    note::log(|| format!("pinned {length} bytes at {address:#x}"));
    Ok(address)
}

/// `cudaFreeHost`: waits for the device, then unpins and unmaps.
pub(crate) fn host_free(address: usize) -> Status {
    capture_rules::unsafe_call()?;
    if address == 0 {
        return Ok(());
    }
    of_kind(address, Kind::Host).ok_or(Error::cudaErrorInvalidValue)?;
    waiting::synchronize_all()?;
    let region = remove(address, Kind::Host).ok_or(Error::cudaErrorInvalidValue)?;
    pages::unmap(region.base, region.bytes);
    pins::uncount(region.bytes);
    STATS.host_frees.add(1);
    note::log(|| format!("unpinned {} bytes at {address:#x}", region.bytes));
    Ok(())
}

/// `cudaHostRegister`: lock someone else's memory.
pub(crate) fn host_register(address: usize, bytes: usize, flags: u32) -> Status {
    capture_rules::unsafe_call()?;
    device::activate_current()?;
    if address == 0 || bytes == 0 || address.checked_add(bytes).is_none() {
        return Err(Error::cudaErrorInvalidValue);
    }
    let device = device::current();
    let region = Region {
        base: address,
        bytes,
        kind: Kind::Registered,
        device,
        flags,
    };
    match lock(&REGISTRY).insert(region) {
        Ok(()) => {}
        Err(other) if other.kind == Kind::Device => return Err(Error::cudaErrorInvalidValue),
        Err(_) => return Err(Error::cudaErrorHostMemoryAlreadyRegistered),
    }
    let (start, length) = pages::span(address, bytes);
    let pinned = pins::count(bytes).and_then(|()| {
        pages::lock(start, length).map_err(|error| {
            let limited = pins::explain_lock_limit(&error, length);
            // Without a limit in the way, the kernel refuses only what is not mapped.
            let answer = if limited {
                Error::cudaErrorMemoryAllocation
            } else {
                Error::cudaErrorInvalidValue
            };
            pins::refuse(bytes, answer)
        })
    });
    if let Err(error) = pinned {
        remove(address, Kind::Registered);
        return Err(error);
    }
    STATS.host_registers.add(1);
    note::log(|| format!("registered {bytes} bytes at {address:#x}"));
    Ok(())
}

/// `cudaHostUnregister`: waits for the device, then unlocks.
pub(crate) fn host_unregister(address: usize) -> Status {
    capture_rules::unsafe_call()?;
    if address == 0 {
        return Err(Error::cudaErrorInvalidValue);
    }
    of_kind(address, Kind::Registered).ok_or(Error::cudaErrorHostMemoryNotRegistered)?;
    waiting::synchronize_all()?;
    let region =
        remove(address, Kind::Registered).ok_or(Error::cudaErrorHostMemoryNotRegistered)?;
    let free = lock(&REGISTRY).unshared_pages(region.base, region.bytes);
    pages::unlock(free.start, free.len());
    pins::uncount(region.bytes);
    STATS.host_unregisters.add(1);
    note::log(|| format!("unregistered {} bytes at {address:#x}", region.bytes));
    Ok(())
}

/// `cudaMalloc`: memory of the current device.
pub(crate) fn device_alloc(bytes: usize) -> Status<usize> {
    let device = device::activate_current()?;
    if bytes == 0 {
        return Ok(0);
    }
    let length = pages::round_up(bytes).ok_or(Error::cudaErrorMemoryAllocation)?;
    device::take_memory(device, length)?;
    let region = pages::map(length, true)
        .map(|base| Region {
            base,
            bytes: length,
            kind: Kind::Device,
            device,
            flags: 0,
        })
        .map_err(|_| Error::cudaErrorMemoryAllocation);
    let added = region.and_then(|region| {
        let base = region.base;
        lock(&REGISTRY)
            .insert(region)
            .map(|()| base)
            .map_err(|_| Error::cudaErrorUnknown)
    });
    match added {
        Ok(_) => STATS.device_allocs.add(1),
        Err(_) => device::give_memory(device, length),
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
        STATS.device_frees.add(1);
    }
}

/// The known region that holds an address.
pub(crate) fn find(address: usize) -> Option<Region> {
    lock(&REGISTRY).find(address).cloned()
}

/// Whether an address starts a device allocation.
pub(crate) fn is_device_allocation(address: usize) -> bool {
    of_kind(address, Kind::Device).is_some()
}

/// What a range is.
pub(crate) fn cover(address: usize, bytes: usize) -> Cover {
    lock(&REGISTRY).cover(address, bytes)
}

fn of_kind(address: usize, kind: Kind) -> Option<Region> {
    lock(&REGISTRY)
        .at(address)
        .filter(|region| region.kind == kind)
        .cloned()
}

fn remove(address: usize, kind: Kind) -> Option<Region> {
    let mut registry = lock(&REGISTRY);
    registry.at(address).filter(|region| region.kind == kind)?;
    registry.remove(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_memory_is_locked_and_freed_once() {
        let address = host_alloc(10_000, 0).unwrap();
        assert_eq!(cover(address + 1, 9_000), Cover::PageLocked);
        assert_eq!(host_free(address + 4096), Err(Error::cudaErrorInvalidValue));
        host_free(address).unwrap();
        assert_eq!(host_free(address), Err(Error::cudaErrorInvalidValue));
        assert_eq!(cover(address, 1), Cover::Pageable);
    }

    #[test]
    fn registration_is_refused_twice_and_when_unknown() {
        let memory = vec![0_u8; 20_000];
        let address = memory.as_ptr().addr();
        host_register(address, 20_000, 0).unwrap();
        assert_eq!(
            host_register(address + 100, 10, 0),
            Err(Error::cudaErrorHostMemoryAlreadyRegistered)
        );
        assert_eq!(host_free(address), Err(Error::cudaErrorInvalidValue));
        assert_eq!(
            host_unregister(address + 1),
            Err(Error::cudaErrorHostMemoryNotRegistered)
        );
        host_unregister(address).unwrap();
        assert_eq!(
            host_unregister(address),
            Err(Error::cudaErrorHostMemoryNotRegistered)
        );
        assert_eq!(host_register(0, 1, 0), Err(Error::cudaErrorInvalidValue));
        assert_eq!(
            host_register(address, 0, 0),
            Err(Error::cudaErrorInvalidValue)
        );
    }

    #[test]
    fn device_memory_is_never_page_locked() {
        let address = device_alloc(100).unwrap();
        assert_eq!(cover(address, 4096), Cover::Device(0));
        assert_eq!(
            host_register(address, 10, 0),
            Err(Error::cudaErrorInvalidValue)
        );
        assert_eq!(host_free(address), Err(Error::cudaErrorInvalidValue));
        assert_eq!(device_free(address + 1), Err(Error::cudaErrorInvalidValue));
        device_free(address).unwrap();
    }

    #[test]
    fn a_device_runs_out_of_memory() {
        assert_eq!(device_alloc(1 << 50), Err(Error::cudaErrorMemoryAllocation));
    }
}
