//! The driver's virtual memory: address ranges that are reserved, physical memory that is made, and one mapped into
//! the other, as expandable segments of PyTorch's allocator use them.
//!
//! Physical memory is a part of one file without a name, so that its content stays whatever address it is mapped at. It
//! counts against its device's memory from its creation until neither a handle nor a mapping is left. Memory that is
//! mapped can be used once access to it was given. As with a driver, nothing here waits for streams: work on a range
//! that is unmapped under it touches memory that is not there, and that ends the process.

mod book;

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Mutex, OnceLock};

use book::{Book, aligned};
pub(crate) use book::{GRANULARITY, Mapping, Physical};

use crate::error::{Error, Status, lock};
use crate::registry::{Kind, Region};
use crate::{device, memory, pages};

static BOOK: Mutex<Book> = Mutex::new(Book::new());

/// The file that holds all physical memory.
fn file() -> Status<BorrowedFd<'static>> {
    static FILE: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let opened = FILE.get_or_init(|| pages::memory_file().ok());
    let file = opened.as_ref().ok_or(Error::cudaErrorMemoryAllocation)?;
    Ok(file.as_fd())
}

/// `cuMemAddressReserve`: a range of addresses with nothing behind them.
pub(crate) fn reserve(bytes: usize, alignment: usize) -> Status<usize> {
    let alignment = alignment.max(GRANULARITY);
    if !aligned(0, bytes) || !alignment.is_power_of_two() {
        return Err(Error::cudaErrorInvalidValue);
    }
    let base = pages::reserve(bytes, alignment).map_err(|_| Error::cudaErrorMemoryAllocation)?;
    lock(&BOOK).reserve(base, bytes);
    Ok(base)
}

/// `cuMemAddressFree`.
pub(crate) fn unreserve(base: usize, bytes: usize) -> Status {
    lock(&BOOK).unreserve(base, bytes)?;
    pages::unmap(base, bytes);
    Ok(())
}

/// `cuMemCreate`: physical memory of a device, with a handle.
pub(crate) fn create(device: i32, bytes: usize, exported_as: u32) -> Status<u64> {
    device::check(device)?;
    if !aligned(0, bytes) {
        return Err(Error::cudaErrorInvalidValue);
    }
    let file = file()?;
    device::take_memory(device, bytes)?;
    let mut book = lock(&BOOK);
    let handle = book.create(device, bytes, exported_as);
    if pages::lengthen(file, book.file_length()).is_err() {
        let physical = book.release(handle)?;
        give_back(physical);
        return Err(Error::cudaErrorMemoryAllocation);
    }
    Ok(handle)
}

/// `cuMemRelease`.
pub(crate) fn release(handle: u64) -> Status {
    let physical = lock(&BOOK).release(handle)?;
    give_back(physical);
    Ok(())
}

/// `cuMemRetainAllocationHandle`.
pub(crate) fn retain(address: usize) -> Status<u64> {
    lock(&BOOK).retain(address)
}

/// `cuMemGetAllocationPropertiesFromHandle`.
pub(crate) fn properties(handle: u64) -> Status<Physical> {
    lock(&BOOK).physical(handle)
}

/// `cuMemMap`: nobody may touch the memory yet.
pub(crate) fn map(mapping: Mapping) -> Status {
    let mut book = lock(&BOOK);
    let physical = book.map(mapping)?;
    let at = (mapping.base, mapping.bytes);
    if pages::map_file(at, file()?, physical.offset).is_err() {
        book.unmap(mapping);
        return Err(Error::cudaErrorMemoryAllocation);
    }
    Ok(())
}

/// `cuMemSetAccess`: a device may use all of the mappings that a range consists of, or may not.
///
/// Access of other devices than the one that holds the memory is checked and not kept.
pub(crate) fn set_access(base: usize, bytes: usize, to: i32, allowed: bool) -> Status {
    device::check(to)?;
    let book = lock(&BOOK);
    for (mapping, device) in book.tiles(base, bytes)? {
        if device != to {
            continue;
        }
        pages::protect(mapping.base, mapping.bytes, allowed).map_err(|_| Error::cudaErrorMemoryAllocation)?;
        memory::remove(mapping.base, Kind::Mapped);
        if allowed {
            let region = Region { base: mapping.base, bytes: mapping.bytes, kind: Kind::Mapped, device };
            memory::insert(region).map_err(|_| Error::cudaErrorUnknown)?;
        }
    }
    Ok(())
}

/// `cuMemUnmap`: a range that consists of whole mappings.
pub(crate) fn unmap(base: usize, bytes: usize) -> Status {
    let mut book = lock(&BOOK);
    for (mapping, _) in book.tiles(base, bytes)? {
        memory::remove(mapping.base, Kind::Mapped);
        pages::hide(mapping.base, mapping.bytes).map_err(|_| Error::cudaErrorMemoryAllocation)?;
        give_back(book.unmap(mapping));
    }
    Ok(())
}

fn give_back(physical: Option<Physical>) {
    let (Some(physical), Ok(file)) = (physical, file()) else {
        return;
    };
    pages::forget_file(file, physical.offset, physical.bytes);
    device::give_memory(physical.device, physical.bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Cover;

    const UNIT: usize = GRANULARITY;

    fn mapped(base: usize, handle: u64) {
        let mapping = Mapping { base, bytes: UNIT, handle };
        map(mapping).unwrap();
        set_access(base, UNIT, 0, true).unwrap();
    }

    fn first_byte(base: usize) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(base)
    }

    #[test]
    fn content_stays_with_the_physical_memory() {
        let base = reserve(4 * UNIT, 0).unwrap();
        assert_eq!(base % UNIT, 0);
        let handle = create(0, UNIT, 0).unwrap();
        mapped(base, handle);
        // SAFETY: mapped just now, with access.
        unsafe { first_byte(base).write(7) };
        unmap(base, UNIT).unwrap();
        mapped(base + 2 * UNIT, handle);
        mapped(base + 3 * UNIT, handle);
        // SAFETY: as above; both addresses show the same memory.
        let seen = unsafe {
            first_byte(base + 3 * UNIT).add(1).write(8);
            let first = first_byte(base + 2 * UNIT);
            (first.read(), first.add(1).read())
        };
        assert_eq!(seen, (7, 8));
        assert_eq!(memory::cover(base + 2 * UNIT, 2 * UNIT), Cover::Device(0));
        assert_eq!(memory::cover(base, UNIT), Cover::Pageable);
        assert_eq!(memory::device_free(base + 2 * UNIT), Err(Error::cudaErrorInvalidValue));
        assert!(unreserve(base, 4 * UNIT).is_err(), "something is mapped");
        unmap(base + 2 * UNIT, 2 * UNIT).unwrap();
        release(handle).unwrap();
        unreserve(base, 4 * UNIT).unwrap();
        assert!(release(handle).is_err());
    }

    #[test]
    fn what_is_refused_takes_nothing() {
        assert_eq!(create(0, 1 << 50, 0), Err(Error::cudaErrorMemoryAllocation));
        assert_eq!(create(0, UNIT + 1, 0), Err(Error::cudaErrorInvalidValue));
        assert_eq!(create(99, UNIT, 0), Err(Error::cudaErrorInvalidDevice));
        assert_eq!(reserve(UNIT, 3 * UNIT), Err(Error::cudaErrorInvalidValue));
        assert_eq!(reserve(0, 0), Err(Error::cudaErrorInvalidValue));
        assert_eq!(unmap(UNIT, UNIT), Err(Error::cudaErrorInvalidValue));
    }
}
