//! A stretch of memory of this process's own: mapped, advised, filled with pages, unmapped whole.
//!
//! The system calls, and no policy. Knows nothing of CUDA. Invariants: a mapping is unmapped once,
//! whole, by `unmap` alone; dropping one leaks it, which is right for memory that a device may
//! still use. An ordinary mapping ends in a page that nobody can touch, so that the kernel never
//! makes one area of two neighbours, and what it says about an area is about one region. No mapping
//! is in a core dump, and none is copied at a fork: children share it or do not have it.

#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::ptr::{null, null_mut, with_exposed_provenance_mut};

use libc::{c_int, c_long, c_ulong, c_void};

use super::pages::{GIANT, LARGE, PAGE, Pages};
use crate::config::memory::Fork;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Mapping {
    /// All of it, what nobody can touch included.
    whole: Range<usize>,
    /// What can be used, in whole units.
    body: Range<usize>,
    /// What forked children have of it.
    fork: Fork,
}

impl Mapping {
    /// Fresh memory of at least `bytes` bytes; only pages from the pool are promised by the kernel.
    pub(super) fn new(bytes: usize, pages: Pages, fork: Fork) -> io::Result<Self> {
        let unit = pages.unit();
        let length = bytes
            .checked_next_multiple_of(unit)
            .filter(|length| (1..=isize::MAX as usize - GIANT).contains(length))
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let mapping = match pages {
            Pages::Giant | Pages::Large => {
                let size = (unit.trailing_zeros() as c_int) << libc::MAP_HUGE_SHIFT;
                let flags = sharing(fork) | libc::MAP_HUGETLB | size;
                let start = map(length, READ_WRITE, flags)?;
                let body = start..start + length;
                let whole = body.clone();
                Self { whole, body, fork }
            }
            Pages::Transparent | Pages::Collapsed => Self::fenced(length, LARGE, fork)?,
            Pages::Small => Self::fenced(length, PAGE, fork)?,
        };
        match pages {
            Pages::Giant | Pages::Large => {}
            Pages::Transparent | Pages::Collapsed => {
                // What a kernel without huge pages says to this changes nothing.
                let _ = mapping.advise(&mapping.body, libc::MADV_HUGEPAGE);
            }
            Pages::Small => mapping.only_small(0),
        }
        match mapping.keep_from_others() {
            Ok(()) => Ok(mapping),
            Err(why) => {
                let _ = mapping.unmap();
                Err(why)
            }
        }
    }

    fn fenced(length: usize, alignment: usize, fork: Fork) -> io::Result<Self> {
        let room = length + alignment;
        let start = map(room, libc::PROT_NONE, libc::MAP_PRIVATE)?;
        let body = start.next_multiple_of(alignment);
        let mapping = Self {
            whole: start..start + room,
            // `room` is one alignment more, of which the start takes less: a page is left.
            body: body..body + length,
            fork,
        };
        let flags = sharing(fork) | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // Mapped anew and not opened: the kernel makes huge pages of shared memory only where the
        // memory itself begins at a border.
        // SAFETY: the range lies in a mapping made just now, which nobody else knows.
        let opened = unsafe { libc::mmap(at(body), length, READ_WRITE, flags, -1, 0) };
        if opened == libc::MAP_FAILED {
            let why = io::Error::last_os_error();
            let _ = mapping.unmap();
            return Err(why);
        }
        Ok(mapping)
    }

    pub(super) fn base(&self) -> usize {
        self.body.start
    }

    pub(super) fn len(&self) -> usize {
        self.body.len()
    }

    /// From this offset on the kernel is to use pages of 4 KiB.
    pub(super) fn only_small(&self, from: usize) {
        let rest = self.body.start + from..self.body.end;
        let _ = self.advise(&rest, libc::MADV_NOHUGEPAGE);
    }

    /// Leaves it out of core dumps, as a driver's own memory is, and out of children where they are to
    /// have none of it: private pages that a device writes to would all be copied at the fork.
    fn keep_from_others(&self) -> io::Result<()> {
        // Without that a core dump is longer, and nothing else.
        let _ = self.advise(&self.body, libc::MADV_DONTDUMP);
        match self.fork {
            Fork::Share => Ok(()),
            Fork::Hide => self.advise(&self.body, libc::MADV_DONTFORK),
        }
    }

    /// What forked children have of it.
    pub(super) fn fork(&self) -> Fork {
        self.fork
    }

    /// In a child that has none of it: nothing else may come to lie at these addresses, where tensors
    /// of the parent's would read it.
    pub(super) fn keep_free_in_child(&self) {
        let flags = libc::MAP_PRIVATE
            | libc::MAP_ANONYMOUS
            | libc::MAP_NORESERVE
            | libc::MAP_FIXED_NOREPLACE;
        let (start, length) = (at(self.body.start), self.body.len());
        // SAFETY: nothing is replaced; where something lies there already, or the kernel is older
        // than the flag and chooses another place, no more is lost than a range of addresses.
        unsafe { libc::mmap(start, length, libc::PROT_NONE, flags, -1, 0) };
    }

    /// Has the kernel put pages that are not there yet on this node while it has room.
    ///
    /// A preference and no bond: where a bond cannot be kept, the kernel ends the program.
    pub(super) fn prefer(&self, node: u32) -> io::Result<()> {
        let mut mask = [0 as c_ulong; 16];
        let bits = c_ulong::BITS;
        let word = mask
            .get_mut((node / bits) as usize)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        *word = 1 << (node % bits);
        // SAFETY: the range is this mapping's, and the kernel reads as many bits as there are; it
        // counts one more than it reads.
        done(unsafe {
            libc::syscall(
                libc::SYS_mbind,
                self.body.start,
                self.body.len(),
                libc::MPOL_PREFERRED,
                mask.as_ptr(),
                c_ulong::from(bits) * mask.len() as c_ulong + 1,
                0,
            )
        })
    }

    /// Has the kernel fill this part with pages, zeroed: the offsets are of whole pages.
    pub(super) fn populate(&self, part: &Range<usize>) -> io::Result<()> {
        self.advise_unless_interrupted(part, libc::MADV_POPULATE_WRITE)
    }

    /// Has the kernel put this part's pages together to huge ones, zeroed where there is none yet:
    /// offsets are of whole huge pages, and each has one page that is there. On an error a part of
    /// them may be put together.
    pub(super) fn collapse(&self, part: &Range<usize>) -> io::Result<()> {
        self.advise_unless_interrupted(part, libc::MADV_COLLAPSE)
    }

    fn advise_unless_interrupted(&self, part: &Range<usize>, advice: c_int) -> io::Result<()> {
        let part = self.part(part);
        loop {
            match self.advise(&part, advice) {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    /// As `populate`, for kernels that do not know it; only where a page cannot fail to come.
    pub(super) fn write(&self, part: &Range<usize>) {
        for page in self.part(part).step_by(PAGE) {
            // SAFETY: the address lies in this mapping, which is readable and writable, and holds
            // nothing yet: whoever has the region waits until it is filled.
            unsafe { std::ptr::write_volatile(with_exposed_provenance_mut::<u8>(page), 0) };
        }
    }

    /// Gives the memory back; nobody may use it any more.
    pub(super) fn unmap(self) -> io::Result<()> {
        // SAFETY: the range was mapped by `new`, whole, and this is the one place that unmaps it;
        // its users are done with it, and no device is told of it any more.
        done(unsafe { libc::munmap(at(self.whole.start), self.whole.len()) })
    }

    fn part(&self, part: &Range<usize>) -> Range<usize> {
        assert!(
            part.start <= part.end && part.end <= self.body.len(),
            "{part:?}"
        );
        self.body.start + part.start..self.body.start + part.end
    }

    /// For a range of this mapping and advice that keeps its content.
    fn advise(&self, range: &Range<usize>, advice: c_int) -> io::Result<()> {
        // SAFETY: the range lies in this mapping, and none of the advice given here drops content.
        done(unsafe { libc::madvise(at(range.start), range.len(), advice) })
    }
}

/// Whether this kernel can fill a mapping by itself, and say so when it cannot: Linux 5.14.
pub(super) fn kernel_populates() -> bool {
    kernel_knows(libc::MADV_POPULATE_WRITE)
}

/// Whether this kernel puts pages together to huge ones when it is told to: Linux 6.1.
pub(super) fn kernel_collapses() -> bool {
    kernel_knows(libc::MADV_COLLAPSE)
}

fn kernel_knows(advice: c_int) -> bool {
    // SAFETY: of an empty range the kernel looks at the advice alone.
    done(unsafe { libc::madvise(null_mut(), 0, advice) }).is_ok()
}

/// The node of the page at each of these addresses; nothing for one that is not there.
pub(super) fn nodes(addresses: &[usize]) -> io::Result<Vec<Option<u32>>> {
    let mut nodes = vec![-1 as c_int; addresses.len()];
    // SAFETY: with no target nodes nothing moves. The kernel reads as many addresses as there are,
    // which need not be mapped, and writes as many answers.
    done(unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            addresses.len(),
            addresses.as_ptr(),
            null::<c_int>(),
            nodes.as_mut_ptr(),
            0,
        )
    })?;
    Ok(nodes.into_iter().map(|it| u32::try_from(it).ok()).collect())
}

const READ_WRITE: c_int = libc::PROT_READ | libc::PROT_WRITE;

/// Whether children write to the same memory, or have none.
fn sharing(fork: Fork) -> c_int {
    match fork {
        Fork::Share => libc::MAP_SHARED,
        Fork::Hide => libc::MAP_PRIVATE,
    }
}

fn map(length: usize, protection: c_int, flags: c_int) -> io::Result<usize> {
    let flags = libc::MAP_ANONYMOUS | flags;
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches nothing else.
    let address = unsafe { libc::mmap(null_mut(), length, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        Err(io::Error::last_os_error())
    } else {
        Ok(address.expose_provenance())
    }
}

fn at(address: usize) -> *mut c_void {
    with_exposed_provenance_mut(address)
}

fn done(result: impl Into<c_long>) -> io::Result<()> {
    if result.into() == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
