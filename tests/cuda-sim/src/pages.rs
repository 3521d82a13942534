//! The system calls under host memory: map, unmap, lock, unlock. No policy.
//!
//! The kernel itself is asked, as rustix does on Linux, and not libc, whose names are `system`'s.

use std::ffi::c_void;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{self, FallocateFlags, MemfdFlags};
use rustix::mm::{self, Advice, MapFlags, MprotectFlags, MsyncFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

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
    let (sharing, advices): (_, &[Advice]) = match like {
        Like::Ordinary => (MapFlags::PRIVATE, &[]),
        Like::Driver => (MapFlags::PRIVATE, &[Advice::LinuxNoHugepage]),
        Like::SharedDriver => (MapFlags::SHARED, &[Advice::LinuxNoHugepage, Advice::LinuxDontDump]),
    };
    let address = map_anonymous(None, bytes, READ_WRITE, sharing)?;
    for advice in advices {
        // SAFETY: the range was mapped just now and is ours. Without the advice it serves, too.
        let _ = unsafe { mm::madvise(pointer(address), bytes, *advice) };
    }
    Ok(address)
}

/// Unmap what [`map`] gave.
pub(crate) fn unmap(address: usize, bytes: usize) {
    // SAFETY: callers pass a range that `map` gave and that the registry no longer lists.
    let _ = unsafe { mm::munmap(pointer(address), bytes) };
}

/// Take a range of addresses that nobody may touch, aligned to a power of two.
pub(crate) fn reserve(bytes: usize, alignment: usize) -> io::Result<usize> {
    let room = bytes.checked_add(alignment).ok_or(io::ErrorKind::OutOfMemory)?;
    let start = map_anonymous(None, room, ProtFlags::empty(), MapFlags::PRIVATE)?;
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
    map_anonymous(Some(address), bytes, ProtFlags::empty(), MapFlags::PRIVATE).map(|_| ())
}

/// Map a part of a file over a reserved range; nobody may touch it yet.
pub(crate) fn map_file(at: (usize, usize), file: BorrowedFd<'_>, offset: usize) -> io::Result<()> {
    let (address, bytes) = at;
    let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE;
    let (start, nobody) = (pointer(address), ProtFlags::empty());
    // SAFETY: the range was reserved for this, and holds nothing of Rust's.
    unsafe { mm::mmap(start, bytes, nobody, flags, file, offset as u64) }?;
    Ok(())
}

/// Allow or forbid reading and writing.
pub(crate) fn protect(address: usize, bytes: usize, allowed: bool) -> io::Result<()> {
    let protection = match allowed {
        true => MprotectFlags::READ | MprotectFlags::WRITE,
        false => MprotectFlags::empty(),
    };
    // SAFETY: callers pass a range that `map_file` mapped, which holds nothing of Rust's.
    Ok(unsafe { mm::mprotect(pointer(address), bytes, protection) }?)
}

/// A file without a name that only memory holds.
pub(crate) fn memory_file() -> io::Result<OwnedFd> {
    Ok(fs::memfd_create("pinbuddy-sim", MemfdFlags::CLOEXEC)?)
}

/// Make a file longer; nothing is taken for it until it is touched.
pub(crate) fn lengthen(file: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    Ok(fs::ftruncate(file, bytes as u64)?)
}

/// Give the pages of a part of a file back. It cannot fail where the part lies in the file; if it did, the pages would
/// stay taken.
pub(crate) fn forget_file(file: BorrowedFd<'_>, offset: usize, bytes: usize) {
    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let _ = fs::fallocate(file, mode, offset as u64, bytes as u64);
}

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Map at an address that is reserved, or anywhere.
fn map_anonymous(address: Option<usize>, bytes: usize, protection: ProtFlags, sharing: MapFlags) -> io::Result<usize> {
    let fixed = address.map_or(MapFlags::empty(), |_| MapFlags::FIXED);
    let flags = sharing | fixed | MapFlags::NORESERVE;
    let start = pointer(address.unwrap_or(0));
    // SAFETY: a fixed address lies in a range that was reserved for this, and holds nothing of Rust's; a mapping at an
    // address of the kernel's choice touches nothing else.
    let mapped = unsafe { mm::mmap_anonymous(start, bytes, protection, flags) }?;
    Ok(mapped.expose_provenance())
}

fn pointer(address: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address)
}

/// Lock whole pages into memory, touching all of them.
pub(crate) fn lock(address: usize, bytes: usize) -> io::Result<()> {
    // SAFETY: locking changes no content, and the kernel refuses a range that is not mapped.
    Ok(unsafe { mm::mlock(pointer(address), bytes) }?)
}

/// Refuse pages that are not mapped, and touch none.
pub(crate) fn check_mapped(address: usize, bytes: usize) -> io::Result<()> {
    // SAFETY: an asynchronous msync writes nothing anywhere; the kernel only walks the mappings and
    // refuses a range that is not mapped.
    Ok(unsafe { mm::msync(pointer(address), bytes, MsyncFlags::ASYNC) }?)
}

/// Undo [`lock`].
pub(crate) fn unlock(address: usize, bytes: usize) {
    // SAFETY: unlocking changes no content, and the kernel refuses a range that is not mapped.
    let _ = unsafe { mm::munlock(pointer(address), bytes) };
}

/// The RLIMIT_MEMLOCK of this process in bytes; `None` where there is no limit.
pub(crate) fn lock_limit() -> Option<u64> {
    getrlimit(Resource::Memlock).current
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
