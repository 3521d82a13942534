//! The system calls under host memory: map, unmap, lock, unlock. No policy.

use std::io;

use crate::system;

/// The unit of locking.
pub(crate) const PAGE: usize = 4096;

/// Round up to whole pages; `None` on overflow.
pub(crate) fn round_up(bytes: usize) -> Option<usize> {
    Some(bytes.checked_add(PAGE - 1)? & !(PAGE - 1))
}

/// The whole pages that a range touches, as address and length.
pub(crate) fn span(address: usize, bytes: usize) -> (usize, usize) {
    let start = address & !(PAGE - 1);
    let end = (address + bytes).div_ceil(PAGE) * PAGE;
    (start, end - start)
}

/// What fresh memory is to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Like {
    /// A program's own, of pages that the system chooses.
    Ordinary,
    /// Of pages of 4 KiB, as page-locked memory from the CUDA driver is.
    Driver,
    /// And shared with forked children and left out of core dumps, as that is, too.
    SharedDriver,
}

/// Map fresh anonymous memory.
pub(crate) fn map(bytes: usize, like: Like) -> io::Result<usize> {
    let sharing = match like {
        Like::Ordinary | Like::Driver => libc::MAP_PRIVATE,
        Like::SharedDriver => libc::MAP_SHARED,
    };
    let _unwatched = system::Unwatched::begin();
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches nothing else.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            sharing | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let advise = |advice| {
        // SAFETY: the range was mapped just now and is ours.
        unsafe { libc::madvise(address, bytes, advice) };
    };
    match like {
        Like::Ordinary => {}
        Like::Driver => advise(libc::MADV_NOHUGEPAGE),
        Like::SharedDriver => {
            advise(libc::MADV_NOHUGEPAGE);
            advise(libc::MADV_DONTDUMP);
        }
    }
    Ok(address.addr())
}

/// Unmap what [`map`] gave.
pub(crate) fn unmap(address: usize, bytes: usize) {
    let _unwatched = system::Unwatched::begin();
    // SAFETY: callers pass a range that `map` gave and that the registry no longer lists.
    unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(address), bytes) };
}

/// Take a range of addresses that nobody may touch, aligned to a power of two.
pub(crate) fn reserve(bytes: usize, alignment: usize) -> io::Result<usize> {
    let room = bytes
        .checked_add(alignment)
        .ok_or(io::ErrorKind::OutOfMemory)?;
    let start = map_at(None, room, libc::PROT_NONE, ANONYMOUS, (-1, 0))?;
    let base = start.next_multiple_of(alignment);
    let behind = base + bytes;
    if base > start {
        unmap(start, base - start);
    }
    if start + room > behind {
        unmap(behind, start + room - behind);
    }
    Ok(base)
}

/// Put back a reserved range, in place of what is mapped there.
pub(crate) fn hide(address: usize, bytes: usize) -> io::Result<()> {
    map_at(Some(address), bytes, libc::PROT_NONE, ANONYMOUS, (-1, 0)).map(|_| ())
}

/// Map a part of a file over a reserved range; nobody may touch it yet.
pub(crate) fn map_file(at: (usize, usize), file: i32, offset: usize) -> io::Result<()> {
    let (address, bytes) = at;
    map_at(
        Some(address),
        bytes,
        libc::PROT_NONE,
        libc::MAP_SHARED,
        (file, offset),
    )
    .map(|_| ())
}

/// Allow or forbid reading and writing.
pub(crate) fn protect(address: usize, bytes: usize, allowed: bool) -> io::Result<()> {
    let protection = if allowed {
        libc::PROT_READ | libc::PROT_WRITE
    } else {
        libc::PROT_NONE
    };
    let start = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: callers pass a range that `map_file` mapped, which holds nothing of Rust's.
    succeeded(unsafe { libc::mprotect(start, bytes, protection) })
}

/// A file without a name that only memory holds.
pub(crate) fn memory_file() -> io::Result<i32> {
    let _unwatched = system::Unwatched::begin();
    // SAFETY: the name is a C string.
    let file = unsafe { libc::memfd_create(c"pinbuddy-sim".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}

/// Make a file longer; nothing is taken for it until it is touched.
pub(crate) fn lengthen(file: i32, bytes: usize) -> io::Result<()> {
    let length = i64::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
    // SAFETY: no pointers are passed.
    succeeded(unsafe { libc::ftruncate(file, length) })
}

/// Give the pages of a part of a file back. It cannot fail where the part lies in the file; if it did, the pages would
/// stay taken.
pub(crate) fn forget_file(file: i32, offset: usize, bytes: usize) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    if let (Ok(offset), Ok(bytes)) = (i64::try_from(offset), i64::try_from(bytes)) {
        // SAFETY: no pointers are passed.
        unsafe { libc::fallocate(file, mode, offset, bytes) };
    }
}

const ANONYMOUS: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

/// Map at an address that is reserved, or anywhere.
fn map_at(
    address: Option<usize>,
    bytes: usize,
    protection: i32,
    kind: i32,
    (file, offset): (i32, usize),
) -> io::Result<usize> {
    let fixed = address.map_or(0, |_| libc::MAP_FIXED);
    let offset = i64::try_from(offset).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let start = std::ptr::with_exposed_provenance_mut(address.unwrap_or(0));
    let _unwatched = system::Unwatched::begin();
    // SAFETY: a fixed address lies in a range that was reserved for this, and holds nothing of Rust's.
    let mapped = unsafe {
        libc::mmap(
            start,
            bytes,
            protection,
            kind | fixed | libc::MAP_NORESERVE,
            file,
            offset,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(mapped.expose_provenance())
}

fn succeeded(result: i32) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Lock whole pages into memory, touching all of them.
pub(crate) fn lock(address: usize, bytes: usize) -> io::Result<()> {
    // SAFETY: locking changes no content, and the kernel refuses a range that is not mapped.
    let result = unsafe { libc::mlock(std::ptr::with_exposed_provenance(address), bytes) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Refuse pages that are not mapped, and touch none.
pub(crate) fn check_mapped(address: usize, bytes: usize) -> io::Result<()> {
    let start = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: an asynchronous msync writes nothing anywhere; the kernel only walks the mappings and
    // refuses a range that is not mapped.
    let result = unsafe { libc::msync(start, bytes, libc::MS_ASYNC) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Undo [`lock`].
pub(crate) fn unlock(address: usize, bytes: usize) {
    // SAFETY: unlocking changes no content, and the kernel refuses a range that is not mapped.
    unsafe { libc::munlock(std::ptr::with_exposed_provenance(address), bytes) };
}

/// The RLIMIT_MEMLOCK of this process in bytes; `None` where there is no limit.
pub(crate) fn lock_limit() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid place for the answer.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    (result == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_whole_pages() {
        assert_eq!(span(4096, 4096), (4096, 4096));
        assert_eq!(span(4095, 2), (0, 8192));
        assert_eq!(round_up(1), Some(4096));
        assert_eq!(round_up(usize::MAX), None);
    }

    #[test]
    fn locking_what_is_not_mapped_is_refused() {
        let address = map(2 * PAGE, Like::Driver).unwrap();
        assert!(check_mapped(address, 2 * PAGE).is_ok());
        unmap(address, 2 * PAGE);
        assert!(lock(address, PAGE).is_err());
        assert!(check_mapped(address, PAGE).is_err());
    }
}
