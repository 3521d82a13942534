//! Whose pages memory lies in, as `/proc/self/maps` and glibc's `malloc` say. Decides what may be pinned, and pins nothing.
//!
//! Whole pages are registered. A neighbour in the first or last page would count as pinned: its copies would fail where it goes on
//! beyond the page, and run on after its memory is given back. So each edge of the memory is that of a page, of its mapping, or of
//! the mapping that `malloc` made for it alone.

#![allow(unsafe_code)]

use std::fs;
use std::ops::Range;
use std::ptr::with_exposed_provenance;

use crate::backing::pages::sizes;

/// Memory that may be pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) pages: Range<usize>,
    /// The process may write to all of it.
    pub(super) writable: bool,
    /// Stores reach a file, or other processes.
    pub(super) shared: bool,
    /// Private, and no file's.
    pub(super) anonymous: bool,
    /// A file's that is not in memory only.
    pub(super) cached: bool,
}

impl Place {
    /// Why the driver did not register it, from the driver's words: for people.
    pub(super) fn refused(&self, said: String) -> String {
        if self.cached && self.writable {
            format!(
                "{said}; Linux pins no pages of a disk's file that is mapped shared to be written: map it to be read, or privately, or \
                 keep it in /dev/shm"
            )
        } else {
            said
        }
    }
}

/// A line of the list.
struct Area<'a> {
    start: usize,
    end: usize,
    flags: &'a str,
    offset: usize,
    /// Device and inode.
    file: (&'a str, &'a str),
    name: &'a str,
}

/// So much more than was asked for has a chunk that `posix_memalign` aligned to 64 bytes.
const MOST_SPARE: usize = 128;

/// How much of a chunk lies before its memory.
const HEADER: usize = 16;

/// The place of `memory` in this process. The error is for people.
pub(super) fn of(memory: Range<usize>) -> Result<Place, String> {
    let maps =
        fs::read_to_string("/proc/self/maps").map_err(|error| format!("/proc/self/maps cannot be read: {error}"))?;
    let page = sizes().page;
    let pages = memory.start / page * page..memory.end.next_multiple_of(page);
    let areas: Vec<Area<'_>> = maps.lines().filter_map(Area::parse).collect();
    let mapping =
        areas.chunk_by(Area::goes_on_in).find(|it| it[0].start <= pages.start && pages.end <= it[it.len() - 1].end);
    let mapping = mapping.ok_or_else(|| {
        format!(
            "found no mapping that has {:#x} to {:#x}, expected one that has all of the tensor",
            pages.start, pages.end
        )
    })?;
    let (first, last) = (&mapping[0], &mapping[mapping.len() - 1]);
    let shared = first.flags.ends_with('s');
    let anonymous = !shared && first.file.1 == "0";
    let own = if !anonymous {
        first.start..last.end
    } else if first.start + HEADER <= memory.start {
        // SAFETY: its mapping has so much before.
        unsafe { chunk_of_malloc(memory.start) }.unwrap_or(0..0)
    } else {
        0..0
    };
    let begins = memory.start == pages.start || own.start == pages.start;
    // An aligned chunk has some bytes more than were asked for, and these may reach into a page of its own.
    let spare = anonymous && own.end == pages.end + page && own.end - memory.end <= page + MOST_SPARE;
    if !begins || (memory.end != pages.end && own.end != pages.end && !spare) {
        let edge = if begins { pages.end - page } else { pages.start };
        return Err(format!(
            "found that it shares the page at {edge:#x} with other memory, expected pages of its own: pin_ the tensor of the whole file \
             or array, or a copy (tensor.pin_memory(), tensor.clone().share_memory_())"
        ));
    }
    let mut parts = mapping.iter().filter(|it| it.start < pages.end && pages.start < it.end);
    const IN_MEMORY: [&str; 4] = ["/dev/shm/", "/memfd:", "/dev/zero", "/SYSV"];
    let writable = parts.all(|it| it.flags.contains('w'));
    Ok(Place {
        writable,
        shared,
        anonymous,
        // Of a private mapping that may be written, each page is the process's own once it is brought in.
        cached: !anonymous && (shared || !writable) && !IN_MEMORY.iter().any(|it| first.name.starts_with(it)),
        pages,
    })
}

impl<'a> Area<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let number = |it| usize::from_str_radix(it, 16).ok();
        Some(Self {
            start: number(start)?,
            end: number(end)?,
            flags: words.next()?,
            offset: number(words.next()?)?,
            file: (words.next()?, words.next()?),
            name: words.next().unwrap_or_default(),
        })
    }

    /// Whether it is one mapping with the next: the kernel lists one in several areas where advice differs.
    fn goes_on_in(&self, next: &Self) -> bool {
        let goes_on = self.file.1 == "0" || self.offset + (self.end - self.start) == next.offset;
        let alike = self.file == next.file && self.flags.ends_with('s') == next.flags.ends_with('s');
        let readable = self.flags.starts_with('r') && next.flags.starts_with('r');
        self.end == next.start && goes_on && alike && readable
    }
}

/// What glibc's `malloc` mapped for the chunk whose memory begins at `address`; `None` for a chunk among others, and for memory
/// that is not its. Other allocators' memory does not look like this, unless by a chance of one in 2^60.
///
/// # Safety
///
/// [`HEADER`] bytes before `address` can be read.
unsafe fn chunk_of_malloc(address: usize) -> Option<Range<usize>> {
    const MAPPED: usize = 2;
    let chunk = address.checked_sub(HEADER).filter(|it| it % HEADER == 0)?;
    let header: *const usize = with_exposed_provenance(chunk);
    // SAFETY: the caller's promise. Another thread may write here where it is no such header.
    let (before, size) = unsafe { (header.read_volatile(), header.add(1).read_volatile()) };
    let (flags, length) = (size & 7, size & !7);
    let mapped = chunk.checked_sub(before)?..chunk.checked_add(length)?;
    let page = sizes().page;
    let is_mapping = mapped.start % page == 0 && mapped.end % page == 0 && length > HEADER;
    (flags == MAPPED && is_mapping).then_some(mapped)
}
