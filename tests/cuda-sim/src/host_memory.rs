//! Page-locked host memory: pinned, registered and given back.
//!
//! The slow part of a pin (`driver`) happens outside the registry's lock.

use crate::error::{Error, Status};
use crate::registry::{Kind, Region};
use crate::stats::STATS;
use crate::{capture_rules, config, device, driver, hazard, memory, note, pages, pins, stats, waiting};

/// `cudaHostAlloc`: fresh page-locked memory.
pub(crate) fn host_alloc(bytes: usize) -> Status<usize> {
    capture_rules::unsafe_call()?;
    let device = device::activate_current()?;
    if bytes == 0 {
        return Ok(0);
    }
    let length = pages::round_up(bytes).ok_or(Error::cudaErrorMemoryAllocation)?;
    let base = driver::pin(length, || map_and_lock(length))?;
    let region = Region { base, bytes: length, kind: Kind::Host, device };
    // A mapping that the kernel gave just now cannot overlap a live one, unless someone unmapped
    // memory that is still registered; that stale entry gives way.
    while let Err(stale) = memory::insert(region.clone()) {
        if memory::remove(stale.base, stale.kind).is_some() && !stale.kind.is_device() {
            pins::uncount(stale.bytes);
        }
    }
    STATS.host_allocs.add(1);
    stats::pinned_by_this_thread();
    note::log(|| format!("pinned {length} bytes at {base:#x}"));
    Ok(base)
}

fn map_and_lock(length: usize) -> Status<usize> {
    pins::count(length)?;
    let like = match config::get().shares {
        true => pages::Like::SharedDriver,
        false => pages::Like::Driver,
    };
    let Ok(address) = pages::map(length, like) else {
        return Err(pins::refuse(length, Error::cudaErrorMemoryAllocation));
    };
    if let Err(error) = driver::lock_pages(address, length) {
        pages::unmap(address, length);
        pins::explain_lock_limit(&error, length);
        return Err(pins::refuse(length, Error::cudaErrorMemoryAllocation));
    }
    Ok(address)
}

/// `cudaFreeHost`: waits for the device, then unpins and unmaps.
pub(crate) fn host_free(address: usize) -> Status {
    capture_rules::unsafe_call()?;
    device::activate_current()?;
    if address == 0 {
        return Ok(());
    }
    let region = memory::of_kind(address, Kind::Host).ok_or(Error::cudaErrorInvalidValue)?;
    hazard::goes("cudaFreeHost", region.base, region.bytes);
    waiting::synchronize_all()?;
    let region = memory::remove(address, Kind::Host).ok_or(Error::cudaErrorInvalidValue)?;
    pages::unmap(region.base, region.bytes);
    pins::uncount(region.bytes);
    STATS.host_frees.add(1);
    stats::unpinned_by_this_thread();
    note::log(|| format!("unpinned {} bytes at {address:#x}", region.bytes));
    Ok(())
}

/// `cudaHostRegister`: lock someone else's memory.
pub(crate) fn host_register(address: usize, bytes: usize) -> Status {
    capture_rules::unsafe_call()?;
    let device = device::activate_current()?;
    if address == 0 || bytes == 0 || address.checked_add(bytes).is_none() {
        return Err(Error::cudaErrorInvalidValue);
    }
    if !config::get().registers {
        return Err(Error::cudaErrorNotPermitted);
    }
    let region = Region { base: address, bytes, kind: Kind::Registered, device };
    match memory::insert(region) {
        Ok(()) => {}
        Err(other) if other.kind.is_device() => return Err(Error::cudaErrorInvalidValue),
        Err(_) => return Err(Error::cudaErrorHostMemoryAlreadyRegistered),
    }
    if let Err(error) = driver::pin(bytes, || lock_in_place(address, bytes)) {
        memory::remove(address, Kind::Registered);
        return Err(error);
    }
    STATS.host_registers.add(1);
    stats::pinned_by_this_thread();
    note::log(|| format!("registered {bytes} bytes at {address:#x}"));
    Ok(())
}

fn lock_in_place(address: usize, bytes: usize) -> Status {
    pins::count(bytes)?;
    let (start, length) = pages::span(address, bytes);
    driver::lock_pages(start, length).map_err(|error| {
        let limited = pins::explain_lock_limit(&error, length);
        // Without a limit in the way, the kernel refuses only what is not mapped.
        let answer = if limited { Error::cudaErrorMemoryAllocation } else { Error::cudaErrorInvalidValue };
        pins::refuse(bytes, answer)
    })
}

/// `cudaHostUnregister`: waits for the device, then unlocks.
pub(crate) fn host_unregister(address: usize) -> Status {
    capture_rules::unsafe_call()?;
    device::activate_current()?;
    if address == 0 {
        return Err(Error::cudaErrorInvalidValue);
    }
    let region = memory::of_kind(address, Kind::Registered).ok_or(Error::cudaErrorHostMemoryNotRegistered)?;
    hazard::goes("cudaHostUnregister", region.base, region.bytes);
    waiting::synchronize_all()?;
    let region = memory::remove(address, Kind::Registered).ok_or(Error::cudaErrorHostMemoryNotRegistered)?;
    let free = memory::unshared_pages(region.base, region.bytes);
    driver::unlock_pages(free.start, free.len());
    pins::uncount(region.bytes);
    STATS.host_unregisters.add(1);
    stats::unpinned_by_this_thread();
    note::log(|| format!("unregistered {} bytes at {address:#x}", region.bytes));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::cover;
    use crate::registry::Cover;

    #[test]
    fn pinned_memory_is_locked_and_freed_once() {
        let address = host_alloc(10_000).unwrap();
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
        host_register(address, 20_000).unwrap();
        assert_eq!(host_register(address + 100, 10), Err(Error::cudaErrorHostMemoryAlreadyRegistered));
        assert_eq!(host_free(address), Err(Error::cudaErrorInvalidValue));
        assert_eq!(host_unregister(address + 1), Err(Error::cudaErrorHostMemoryNotRegistered));
        host_unregister(address).unwrap();
        assert_eq!(host_unregister(address), Err(Error::cudaErrorHostMemoryNotRegistered));
        assert_eq!(host_register(0, 1), Err(Error::cudaErrorInvalidValue));
        assert_eq!(host_register(address, 0), Err(Error::cudaErrorInvalidValue));
    }
}
