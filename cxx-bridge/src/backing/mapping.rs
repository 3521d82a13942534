//! A memory mapping of this process: mapped, advised, filled with pages, unmapped whole.
//!
//! Makes the system calls and has no policy. Knows nothing of CUDA. Invariants: a mapping is unmapped
//! once, whole, by `unmap` only; dropping one leaks it, which is right for memory that a device may
//! still use. A mapping ends in a guard page, so that the kernel never merges the areas of
//! two neighbours, and `smaps` describes each region by itself. Before the body lies a page that is registered with it and
//! never handed out ([`lead`]). No mapping is in a core dump, and none
//! is copied at a fork: children share it or do not have it.

#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::ptr::{null, null_mut, with_exposed_provenance_mut};

use libc::{c_int, c_long, c_ulong, c_void};

use super::pages::{GIANT, Pages, sizes};
use crate::config::memory::Fork;

/// So many bytes before the body are registered with it. CUDA unregisters by the address at which a registration begins, for
/// whoever asks: so none may begin where a block can.
pub(super) fn lead() -> usize {
    sizes().page
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Mapping {
    /// All of it, including the lead and the guard page.
    whole: Range<usize>,
    /// The usable part, in whole units.
    body: Range<usize>,
    /// What children have of it.
    fork: Fork,
}

impl Mapping {
    /// Fresh memory of at least `bytes` bytes. The kernel reserves only pages from the pool.
    pub(super) fn new(bytes: usize, pages: Pages, fork: Fork) -> io::Result<Self> {
        let unit = pages.unit(sizes());
        let length = bytes
            .checked_next_multiple_of(unit)
            .filter(|length| (1..=isize::MAX as usize - GIANT).contains(length))
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let mapping = match pages {
            Pages::Giant | Pages::Large | Pages::Medium => {
                let size = (unit.trailing_zeros() as c_int) << libc::MAP_HUGE_SHIFT;
                Self::fenced(length, unit, libc::MAP_HUGETLB | size, fork)?
            }
            Pages::Transparent | Pages::Collapsed => {
                let mapping = Self::fenced(length, sizes().large, 0, fork)?;
                // A kernel without huge pages refuses, which changes nothing.
                let _ = mapping.advise(&mapping.body, libc::MADV_HUGEPAGE);
                mapping
            }
            Pages::Small => {
                let mapping = Self::fenced(length, unit, 0, fork)?;
                mapping.only_small(0);
                mapping
            }
        };
        match mapping.keep_from_others() {
            Ok(()) => Ok(mapping),
            Err(why) => {
                let _ = mapping.unmap();
                Err(why)
            }
        }
    }

    fn fenced(length: usize, alignment: usize, of_pool: c_int, fork: Fork) -> io::Result<Self> {
        let lead = lead();
        let room = length + alignment + lead;
        let start = map(room, libc::PROT_NONE, libc::MAP_PRIVATE)?;
        let body = (start + lead).next_multiple_of(alignment);
        let mapping = Self {
            whole: start..start + room,
            // The lead and the start take one alignment of `room` at most: a guard page is left.
            body: body..body + length,
            fork,
        };
        // Mapped anew, not by mprotect: the kernel makes huge pages of shared memory only if the
        // memory object itself begins at a huge-page boundary. The lead is an object of its own, too: its pages are small, and
        // it is never merged with the body.
        let parts = [
            (body..body + length, sharing(fork) | of_pool),
            (body - lead..body, libc::MAP_SHARED | libc::MAP_POPULATE),
        ];
        for (part, flags) in parts {
            if let Err(why) = open(&part, flags) {
                mapping.unmap_around(part);
                return Err(why);
            }
        }
        // If that fails, core dumps are longer.
        let _ = mapping.advise(&(body - lead..body), libc::MADV_DONTDUMP);
        Ok(mapping)
    }

    /// Unmaps it after `part` could not be opened. The kernel may have left a hole there, in which another thread's memory
    /// may lie by now: so the part is taken again where nobody has it, and left alone otherwise.
    fn unmap_around(self, part: Range<usize>) {
        let flags = libc::MAP_ANONYMOUS | libc::MAP_PRIVATE | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: the kernel replaces nothing that is mapped.
        let taken = unsafe { libc::mmap(at(part.start), part.len(), libc::PROT_NONE, flags, -1, 0) };
        if taken == at(part.start) {
            let _ = self.unmap();
            return;
        }
        if taken != libc::MAP_FAILED {
            // A kernel that does not know the flag (before 4.17) has mapped it elsewhere.
            // SAFETY: it was mapped just now, and nobody knows it.
            unsafe { libc::munmap(taken, part.len()) };
        }
        for rest in [self.whole.start..part.start, part.end..self.whole.end] {
            if !rest.is_empty() {
                // SAFETY: `fenced` mapped this range just now, and nobody knows it.
                unsafe { libc::munmap(at(rest.start), rest.len()) };
            }
        }
    }

    pub(super) fn base(&self) -> usize {
        self.body.start
    }

    pub(super) fn len(&self) -> usize {
        self.body.len()
    }

    /// Tells the kernel to use small pages from this offset on.
    pub(super) fn only_small(&self, from: usize) {
        let rest = self.body.start + from..self.body.end;
        let _ = self.advise(&rest, libc::MADV_NOHUGEPAGE);
    }

    /// Leaves it out of core dumps, like a driver's memory. Hides it from children if they are to have
    /// none of it: a fork would copy all private pages that a device writes to.
    fn keep_from_others(&self) -> io::Result<()> {
        // If that fails, core dumps are longer, and nothing else changes.
        let _ = self.advise(&self.body, libc::MADV_DONTDUMP);
        match self.fork {
            Fork::Share => Ok(()),
            Fork::Hide => self.advise(&self.body, libc::MADV_DONTFORK),
        }
    }

    /// What children have of it.
    pub(super) fn fork(&self) -> Fork {
        self.fork
    }

    /// In a child that has none of it: reserves the addresses, so that the parent's tensors never read
    /// other memory there.
    pub(super) fn keep_free_in_child(&self) {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
        let (start, length) = (at(self.body.start), self.body.len());
        // SAFETY: MAP_FIXED_NOREPLACE replaces nothing. If the range is taken, or an older kernel
        // chooses another place, only a range of addresses is lost.
        unsafe { libc::mmap(start, length, libc::PROT_NONE, flags, -1, 0) };
    }

    /// Has the kernel prefer this node for pages that are not present yet.
    ///
    /// A preference, not a binding: if a binding cannot be kept, the kernel ends the program.
    pub(super) fn prefer(&self, node: u32) -> io::Result<()> {
        let mut mask = [0 as c_ulong; 16];
        let bits = c_ulong::BITS;
        let word = mask.get_mut((node / bits) as usize).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
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

    /// Has the kernel fill this part with zeroed pages: offsets are of whole pages.
    pub(super) fn populate(&self, part: &Range<usize>) -> io::Result<()> {
        self.advise_unless_interrupted(part, libc::MADV_POPULATE_WRITE)
    }

    /// Has the kernel collapse this part into huge pages, zeroed where no page is present. Offsets are of
    /// whole huge pages, each with a page that is present. After an error a part may be collapsed.
    pub(super) fn collapse(&self, part: &Range<usize>) -> io::Result<()> {
        self.advise_unless_interrupted(part, libc::MADV_COLLAPSE)
    }

    fn advise_unless_interrupted(&self, part: &Range<usize>, advice: c_int) -> io::Result<()> {
        let part = self.part(part);
        again_if_interrupted(|| self.advise(&part, advice))
    }

    /// As `populate`, for kernels without it; only for memory whose pages cannot be refused.
    pub(super) fn write(&self, part: &Range<usize>) {
        for page in self.part(part).step_by(sizes().page) {
            // SAFETY: the address lies in this mapping, which is readable and writable and holds nothing
            // yet: the region is handed out only once it is filled.
            unsafe { std::ptr::write_volatile(with_exposed_provenance_mut::<u8>(page), 0) };
        }
    }

    /// Unmaps it; it may not be used any more.
    pub(super) fn unmap(self) -> io::Result<()> {
        // SAFETY: `new` mapped exactly this range, only this function unmaps it, its users are done with
        // it, and it is registered with no device.
        done(unsafe { libc::munmap(at(self.whole.start), self.whole.len()) })
    }

    fn part(&self, part: &Range<usize>) -> Range<usize> {
        assert!(part.start <= part.end && part.end <= self.body.len(), "{part:?}");
        self.body.start + part.start..self.body.start + part.end
    }

    /// For a range of this mapping and advice that keeps its content.
    fn advise(&self, range: &Range<usize>, advice: c_int) -> io::Result<()> {
        // SAFETY: the range lies in this mapping, and none of the advice given here drops content.
        done(unsafe { libc::madvise(at(range.start), range.len(), advice) })
    }
}

/// Whether this kernel has `MADV_POPULATE_WRITE`: Linux 5.14.
pub(super) fn kernel_populates() -> bool {
    kernel_knows(libc::MADV_POPULATE_WRITE)
}

/// Whether this kernel has `MADV_COLLAPSE`: Linux 6.1.
pub(super) fn kernel_collapses() -> bool {
    kernel_knows(libc::MADV_COLLAPSE)
}

fn kernel_knows(advice: c_int) -> bool {
    // SAFETY: with an empty range the kernel only checks the advice.
    done(unsafe { libc::madvise(null_mut(), 0, advice) }).is_ok()
}

/// The node of the page at each of these addresses; `None` for a page that is not present.
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

/// How often a call is made that signals interrupt each time. No program gets so many signals during one call: a
/// kernel, or a filter of system calls, that answers nothing else must not make the process hang.
const MOST_INTERRUPTIONS: usize = 1000;

/// Makes a call again where a signal has interrupted it.
fn again_if_interrupted(mut call: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let interrupted = |done: &io::Result<()>| {
        let why = done.as_ref().err();
        why.is_some_and(|it| it.kind() == io::ErrorKind::Interrupted)
    };
    for _ in 1..MOST_INTERRUPTIONS {
        let done = call();
        if !interrupted(&done) {
            return done;
        }
    }
    call()
}

const READ_WRITE: c_int = libc::PROT_READ | libc::PROT_WRITE;

/// The mapping flag for memory that children share, or do not have.
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
    if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(address.expose_provenance()) }
}

/// Has a part of a mapping made just now, which nobody else knows, be memory.
fn open(part: &Range<usize>, flags: c_int) -> io::Result<()> {
    let flags = libc::MAP_ANONYMOUS | libc::MAP_FIXED | flags;
    // SAFETY: the range lies in that mapping, by the caller's promise.
    let opened = unsafe { libc::mmap(at(part.start), part.len(), READ_WRITE, flags, -1, 0) };
    if opened == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn at(address: usize) -> *mut c_void {
    with_exposed_provenance_mut(address)
}

fn done(result: impl Into<c_long>) -> io::Result<()> {
    if result.into() == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls that fail so often with this error, and how often they were made; the last outcome.
    fn calls(failures: usize, error: c_int) -> (usize, io::Result<()>) {
        let mut made = 0;
        let outcome = again_if_interrupted(|| {
            made += 1;
            if made > failures {
                return Ok(());
            }
            Err(io::Error::from_raw_os_error(error))
        });
        (made, outcome)
    }

    #[test]
    fn what_another_thread_has_mapped_where_a_part_failed_stays() {
        let page = sizes().page;
        let mapping = Mapping::fenced(4 * page, page, 0, Fork::Share).unwrap();
        let body = mapping.body.clone();
        // SAFETY: nobody uses it; so the kernel leaves a mapping that it could not replace.
        unsafe { libc::munmap(at(body.start), body.len()) };
        open(&body, libc::MAP_PRIVATE).unwrap();
        let theirs = at(body.start).cast::<u8>();
        // SAFETY: it was opened just now.
        unsafe { theirs.write(7) };
        mapping.unmap_around(body.clone());
        // SAFETY: as above, if it is still there; otherwise this process ends, as theirs would.
        assert_eq!(unsafe { theirs.read() }, 7);
        // SAFETY: nobody uses it any more.
        unsafe { libc::munmap(at(body.start), body.len()) };
    }

    #[test]
    fn an_interrupted_call_is_made_again_but_not_for_ever() {
        for (failures, error, expected, ends_well) in [
            (0, libc::EINTR, 1, true),
            (3, libc::EINTR, 4, true),
            (usize::MAX, libc::EINTR, MOST_INTERRUPTIONS, false),
            (1, libc::ENOMEM, 1, false),
        ] {
            let (made, outcome) = calls(failures, error);
            assert_eq!((made, outcome.is_ok()), (expected, ends_well));
            let why = outcome.err().map(|it| it.raw_os_error());
            assert!(why.is_none_or(|it| it == Some(error)), "{why:?}");
        }
    }
}
