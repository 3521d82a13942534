//! Finds memory that is used after it was freed, and past its end: `BUDDY_GUARD=1`, for programs that are being debugged.
//!
//! Each block is longer than its request, and the tail is filled with one pattern; a block that is freed and that no
//! stream uses any more is filled with another. Tails are checked when a block is freed, freed memory when it is handed
//! out again, before it is unpinned, and when the process ends. A byte that has changed was written by code that does not
//! have the block: the guard says so, with the block and its last owner, and aborts the process, since its data cannot be
//! trusted. Knows nothing of the engine's segments but their addresses. Invariants: whoever calls owns the block's memory
//! at that moment; memory is written outside the lock. What is in the table of freed memory belongs to nobody, so it may
//! be read under the lock.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::{io, process, ptr, slice};

use crate::lock::Lock;

#[cfg(test)]
mod tests;

/// Bytes of nobody's behind each block.
const TAIL: usize = 64;
const IN_TAIL: u8 = 0xA5;
const IN_FREED: u8 = 0xDB;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Guard {
    blocks: Lock<Blocks>,
}

#[derive(Debug, Default)]
struct Blocks {
    live: BTreeMap<usize, Owner>,
    /// By address; none overlaps another.
    freed: BTreeMap<usize, Freed>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Owner {
    /// Bytes of the request.
    size: usize,
    thread: i32,
    name: [u8; 16],
    /// The thread that freed it; 0 before.
    freed_by: i32,
}

#[derive(Clone, Copy, Debug)]
struct Freed {
    end: usize,
    owner: Owner,
    /// Where the block began: parts of it may be in use again.
    block: usize,
}

/// What a program did wrong, and under which heading docs/troubleshooting.md explains it.
#[derive(Debug, PartialEq, Eq)]
struct Defect {
    text: String,
    heading: &'static str,
}

impl Guard {
    /// How long the block of a request must be; 0 if that is no number.
    pub fn with_tail(&self, size: usize) -> usize {
        size.checked_add(TAIL).unwrap_or(0)
    }

    /// A block was granted for a request of `size` bytes and is about to be handed out.
    ///
    /// # Safety
    ///
    /// The block's memory is the caller's, and what lies in it and is in the table of freed memory is nobody else's.
    pub unsafe fn hand_out(&self, address: usize, bytes: usize, size: usize) {
        // SAFETY: the caller's.
        end_if(unsafe { self.check_freed(address, bytes) });
        // SAFETY: the memory is the caller's.
        unsafe { fill(address + size..address + bytes, IN_TAIL) };
        self.blocks.lock().live.insert(address, Owner::here(size));
    }

    /// The block's user frees it. Streams may still use it.
    ///
    /// # Safety
    ///
    /// The block's tail may be read.
    pub unsafe fn freed(&self, address: usize, bytes: usize) {
        // SAFETY: the caller's.
        end_if(unsafe { self.check_end(address, bytes) });
    }

    /// Nobody uses the block any more.
    ///
    /// # Safety
    ///
    /// The block's memory is the caller's.
    pub unsafe fn idle(&self, address: usize, bytes: usize) {
        let end = address + bytes;
        // SAFETY: the memory is the caller's.
        unsafe { fill(address..end, IN_FREED) };
        let mut blocks = self.blocks.lock();
        if let Some(owner) = blocks.live.remove(&address) {
            let block = address;
            blocks.freed.insert(address, Freed { end, owner, block });
        }
    }

    /// This memory is about to be unpinned.
    ///
    /// # Safety
    ///
    /// As [`Self::hand_out`].
    pub unsafe fn unpins(&self, address: usize, bytes: usize) {
        // SAFETY: the caller's.
        end_if(unsafe { self.check_freed(address, bytes) });
    }

    /// Checks all freed memory.
    ///
    /// # Safety
    ///
    /// All memory that became idle is pinned, unless [`Self::unpins`] was told.
    pub unsafe fn check_all(&self) {
        // Under the lock, so that another thread that still asks for memory gets none that is being read.
        let blocks = self.blocks.lock();
        for (&begin, piece) in &blocks.freed {
            // SAFETY: what is in the table is pinned, and nobody's.
            end_if(unsafe { piece.check(begin) });
        }
    }

    unsafe fn check_freed(&self, address: usize, bytes: usize) -> Result<(), Defect> {
        let pieces = self.blocks.lock().take(address..address + bytes);
        let check = |&(begin, piece): &(usize, Freed)| {
            // SAFETY: as the caller says it is pinned, and nobody else's.
            unsafe { piece.check(begin) }
        };
        pieces.iter().try_for_each(check)
    }

    unsafe fn check_end(&self, address: usize, bytes: usize) -> Result<(), Defect> {
        let thread = this_thread();
        let freed = self.blocks.lock().free(address, thread);
        let owner = freed.map_err(|first| Defect {
            text: format!(
                "a block at {address:#x} was freed twice (bytes: {}), the second time by thread {thread}; the first time \
                 by thread {}",
                first.size, first.freed_by
            ),
            heading: "was freed twice",
        })?;
        let end = address + owner.size;
        // SAFETY: the caller's.
        let Some((first, count)) = (unsafe { change_in(end..address + bytes, IN_TAIL) }) else {
            return Ok(());
        };
        Err(Defect {
            text: format!(
                "{count} bytes were written past the end of a block at {address:#x} (bytes: {}), the first {first} bytes \
                 behind its end; thread {} ({}) asked for it",
                owner.size,
                owner.thread,
                owner.name()
            ),
            heading: "were written past the end of a block",
        })
    }
}

impl Blocks {
    /// The owner of a block that is freed; an error if it was already, with the first owner.
    fn free(&mut self, address: usize, thread: i32) -> Result<Owner, Owner> {
        let Some(owner) = self.live.get_mut(&address) else {
            let freed = self.freed.get(&address);
            return Err(freed.map_or_else(Owner::default, |it| it.owner));
        };
        let before = *owner;
        owner.freed_by = thread;
        match before.freed_by {
            0 => Ok(before),
            _ => Err(before),
        }
    }

    /// Takes what is freed in a range out of the table.
    fn take(&mut self, range: Range<usize>) -> Vec<(usize, Freed)> {
        let before = self.freed.range(..range.start).next_back();
        let reaches_in = before.filter(|(_, it)| it.end > range.start);
        let found = reaches_in.into_iter().chain(self.freed.range(range.clone()));
        let found: Vec<(usize, Freed)> = found.map(|(&begin, &it)| (begin, it)).collect();
        let cut = |(begin, whole): (usize, Freed)| {
            self.freed.remove(&begin);
            if begin < range.start {
                let end = range.start;
                self.freed.insert(begin, Freed { end, ..whole });
            }
            if whole.end > range.end {
                self.freed.insert(range.end, whole);
            }
            let end = whole.end.min(range.end);
            (begin.max(range.start), Freed { end, ..whole })
        };
        found.into_iter().map(cut).collect()
    }
}

impl Owner {
    /// This thread, which asks for a block.
    fn here(size: usize) -> Self {
        let mut name = [0; 16];
        // SAFETY: it writes at most as many bytes as there are, with a 0 at their end.
        unsafe { libc::pthread_getname_np(libc::pthread_self(), name.as_mut_ptr().cast(), name.len()) };
        Self { size, thread: this_thread(), name, freed_by: 0 }
    }

    fn name(&self) -> String {
        let bytes = self.name.split(|&byte| byte == 0).next();
        String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
    }
}

impl Freed {
    /// # Safety
    ///
    /// The memory from `begin` to the piece's end may be read.
    unsafe fn check(&self, begin: usize) -> Result<(), Defect> {
        // SAFETY: the caller's.
        let Some((first, count)) = (unsafe { change_in(begin..self.end, IN_FREED) }) else {
            return Ok(());
        };
        let Self { owner, block, .. } = self;
        Err(Defect {
            text: format!(
                "{count} bytes of a block at {block:#x} (bytes: {}) were written after it was freed, the first at offset \
                 {}; thread {} ({}) asked for it and thread {} freed it. Something uses it still: an address that \
                 outlived its tensor, or a copy on a stream that record_stream was not told of",
                owner.size,
                begin + first - block,
                owner.thread,
                owner.name(),
                owner.freed_by
            ),
            heading: "were written after it was freed",
        })
    }
}

/// Ends the process where a defect was found.
fn end_if(checked: Result<(), Defect>) {
    if let Err(Defect { text, heading }) = checked {
        let line = format!(
            "pinbuddy: BUDDY_GUARD: {text}; the process ends, since its data cannot be trusted (see: pinbuddy explain \
             '{heading}')\n"
        );
        // A closed standard error changes nothing.
        let _ = io::stderr().write_all(line.as_bytes());
        process::abort();
    }
}

fn this_thread() -> i32 {
    // SAFETY: it has no arguments. Not `gettid`, which glibc has only since 2.30.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Of bytes other than `expected` the first one's offset, and their number.
///
/// # Safety
///
/// The memory may be read.
unsafe fn change_in(range: Range<usize>, expected: u8) -> Option<(usize, usize)> {
    let at = ptr::with_exposed_provenance::<u8>(range.start);
    // SAFETY: the caller's.
    let bytes = unsafe { slice::from_raw_parts(at, range.len()) };
    // Compared with itself one byte on, which is as fast as memory.
    if *bytes.first()? == expected && bytes[1..] == bytes[..bytes.len() - 1] {
        return None;
    }
    let first = bytes.iter().position(|&byte| byte != expected)?;
    let count = bytes.iter().filter(|&&byte| byte != expected).count();
    Some((first, count))
}

/// # Safety
///
/// The memory is the caller's.
unsafe fn fill(range: Range<usize>, value: u8) {
    let at = ptr::with_exposed_provenance_mut::<u8>(range.start);
    // SAFETY: the caller's.
    unsafe { at.write_bytes(value, range.len()) };
}
