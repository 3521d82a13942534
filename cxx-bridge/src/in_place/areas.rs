//! Whose pages memory lies in, as `/proc/self/maps` and glibc's `malloc` say. Decides what may be pinned, and pins nothing.
//!
//! Whole pages are registered. A neighbour in the first or last page would count as pinned: its copies would still run after its
//! memory is given back, or fail where it goes on beyond the page. So each edge of the memory must be the edge of a page or of
//! its mapping. On the heap that is a mapping that `malloc` made for this chunk alone.

#![allow(unsafe_code)]

use std::fs;
use std::ops::Range;
use std::ptr::with_exposed_provenance;

use pinbuddy_core::Region;

use super::fill::page_bytes;

/// Addresses.
pub(super) type Pages = Range<usize>;

/// Memory that may be pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) pages: Pages,
    /// The process may write to all of it.
    pub(super) writable: bool,
    /// Stores reach a file, or other processes.
    pub(super) shared: bool,
    /// Private, and no file's.
    pub(super) anonymous: bool,
    /// A file's that is not in memory only: the kernel counts its pages as available even while they are pinned.
    pub(super) cached: bool,
}

/// A line of the list.
#[derive(Clone, Copy, Debug)]
struct Area<'a> {
    start: usize,
    end: usize,
    flags: &'a str,
    offset: usize,
    device: &'a str,
    inode: &'a str,
    name: &'a str,
}

/// How much of a chunk lies before its memory.
const HEADER: usize = 16;

/// The place of `memory` in this process. The error is for people.
pub(super) fn of(memory: Region) -> Result<Place, String> {
    let page = page_bytes();
    let maps = fs::read_to_string("/proc/self/maps")
        .map_err(|error| format!("/proc/self/maps cannot be read: {error}"))?;
    let bytes = memory.base..memory.base + memory.bytes;
    // SAFETY: it is asked for addresses before which memory can be read.
    place(&maps, &bytes, page, |at| unsafe {
        chunk_of_malloc(at, page)
    })
}

/// The place of `memory` in a list of mappings. `chunk` says what `malloc` mapped for the chunk whose memory begins at an
/// address; what lies [`HEADER`] before can be read. The error is for people.
fn place(
    maps: &str,
    memory: &Pages,
    page: usize,
    chunk: impl Fn(usize) -> Option<Pages>,
) -> Result<Place, String> {
    let pages = memory.start / page * page..memory.end.next_multiple_of(page);
    let areas: Vec<Area<'_>> = maps.lines().filter_map(Area::parse).collect();
    let mapping = mapping_of(&areas, &pages)?;
    let within = |address: usize| {
        let readable = |it: &Area<'_>| it.flags.starts_with('r');
        areas
            .iter()
            .any(|it| (it.start..it.end).contains(&address) && readable(it))
    };
    let (first, last) = (mapping[0], mapping[mapping.len() - 1]);
    let shared = first.flags.ends_with('s');
    let anonymous = !shared && first.inode == "0";
    let (owns_first, owns_last) = if !anonymous {
        (first.start == pages.start, last.end == pages.end)
    } else if within(memory.start - HEADER) {
        chunk(memory.start).map_or((false, false), |it| {
            (it.start <= pages.start, pages.end <= it.end)
        })
    } else {
        (false, false)
    };
    for (edge, is_own) in [(memory.start, owns_first), (memory.end, owns_last)] {
        if edge % page != 0 && !is_own {
            return Err(refusal(edge, page, anonymous));
        }
    }
    let inside = mapping
        .iter()
        .filter(|it| it.start < pages.end && pages.start < it.end);
    Ok(Place {
        writable: inside.clone().all(|it| it.flags.contains('w')),
        shared,
        anonymous,
        cached: !anonymous && !first.is_in_memory_only(),
        pages,
    })
}

/// The areas of the one mapping that has all of `pages`: the kernel lists a mapping in several where advice differs.
fn mapping_of<'a>(areas: &[Area<'a>], pages: &Pages) -> Result<Vec<Area<'a>>, String> {
    let unknown = || {
        format!(
            "found no mapping that can be read from {:#x} to {:#x}, expected one that has all of the tensor",
            pages.start, pages.end
        )
    };
    let mut groups = areas.chunk_by(Area::goes_on_in);
    let has = |it: &&[Area<'a>]| it[0].start <= pages.start && pages.end <= it[it.len() - 1].end;
    let mapping = groups.find(has).ok_or_else(unknown)?;
    let unreadable =
        |it: &Area<'_>| !it.flags.starts_with('r') && it.start < pages.end && pages.start < it.end;
    if mapping.iter().any(unreadable) {
        return Err(unknown());
    }
    Ok(mapping.to_vec())
}

fn refusal(edge: usize, page: usize, anonymous: bool) -> String {
    if anonymous {
        return format!(
            "found that it shares the page of {page} bytes at {:#x} with other memory of the heap, expected pages of its own: pin a \
             copy (tensor.pin_memory()), or have it in memory of its own first (tensor.share_memory_())",
            edge / page * page
        );
    }
    format!(
        "found that it begins or ends within a mapping, at {edge:#x}, expected all of the mapping or whole pages of {page} bytes: \
         pin_ the tensor of the whole file, then its parts are pinned, too"
    )
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
            device: words.next()?,
            inode: words.next()?,
            name: words.next().unwrap_or_default(),
        })
    }

    fn goes_on_in(&self, next: &Self) -> bool {
        let same_file = self.device == next.device && self.inode == next.inode;
        let goes_on = self.inode == "0" || self.offset + (self.end - self.start) == next.offset;
        let same_kind = self.flags.as_bytes().last() == next.flags.as_bytes().last();
        self.end == next.start && same_file && goes_on && same_kind
    }

    fn is_in_memory_only(&self) -> bool {
        const IN_MEMORY: [&str; 4] = ["/dev/shm/", "/memfd:", "/dev/zero", "/SYSV"];
        IN_MEMORY.iter().any(|it| self.name.starts_with(it))
    }
}

/// What glibc's `malloc` mapped for the chunk whose memory begins at `address`; `None` for a chunk among others, and for memory
/// that is not its. Other allocators' memory does not look like this, unless by a chance of one in 2^60.
///
/// # Safety
///
/// [`HEADER`] bytes before `address` can be read.
unsafe fn chunk_of_malloc(address: usize, page: usize) -> Option<Pages> {
    const MAPPED: usize = 2;
    let chunk = address.checked_sub(HEADER)?;
    if chunk % HEADER != 0 {
        return None;
    }
    let header: *const usize = with_exposed_provenance(chunk);
    // SAFETY: the caller's promise. Another thread may write here where it is no such header.
    let (before, size) = unsafe { (header.read_volatile(), header.add(1).read_volatile()) };
    let (flags, length) = (size & 7, size & !7);
    let mapped = chunk.checked_sub(before)?..chunk.checked_add(length)?;
    let is_mapping = mapped.start % page == 0 && mapped.end % page == 0 && length > HEADER;
    (flags == MAPPED && is_mapping).then_some(mapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
10000-30000 rw-p 00000000 00:00 0 [heap]
30000-40000 rw-p 00000000 00:00 0
50000-60000 r--s 00000000 08:01 77 /data/model.safetensors
60000-70000 rw-s 00000000 00:19 78 /dev/shm/torch_1 (deleted)
70000-80000 ---p 00000000 00:00 0
80000-82000 rw-p 00000000 08:01 79 /data/part
82000-84000 rw-p 00002000 08:01 79 /data/part
";
    const PAGE: usize = 0x1000;

    fn of(memory: Pages, chunk: Option<Pages>) -> Result<Place, String> {
        place(MAPS, &memory, PAGE, |_| chunk.clone())
    }

    #[test]
    fn a_mapping_says_what_its_memory_is() {
        for (memory, pages, [writable, shared, anonymous, cached]) in [
            (
                0x12000..0x15000,
                0x12000..0x15000,
                [true, false, true, false],
            ),
            (
                0x28000..0x38000,
                0x28000..0x38000,
                [true, false, true, false],
            ),
            (
                0x50080..0x5fff0,
                0x50000..0x60000,
                [false, true, false, true],
            ),
            (
                0x60000..0x6fff0,
                0x60000..0x70000,
                [true, true, false, false],
            ),
            (
                0x80000..0x83ffe,
                0x80000..0x84000,
                [true, false, false, true],
            ),
        ] {
            let expected = Place {
                pages,
                writable,
                shared,
                anonymous,
                cached,
            };
            assert_eq!(of(memory, None), Ok(expected));
        }
    }

    #[test]
    fn memory_that_shares_a_page_is_refused_with_the_pages_address() {
        for (memory, chunk, at) in [
            (0x12040..0x15000, None, "0x12000"),
            (0x12000..0x15040, None, "0x15000"),
            (0x12040..0x15040, Some(0x12000..0x15000), "0x15000"),
            (0x12040..0x15040, Some(0x13000..0x16000), "0x12000"),
            (0x50000..0x5c100, None, "0x5c100"),
            (0x51100..0x60000, None, "0x51100"),
            (0x80000..0x81100, None, "0x81100"),
            // Where advice differs a mapping goes on.
            (0x80000..0x81f00, None, "0x81f00"),
            (0x82100..0x84000, None, "0x82100"),
        ] {
            let why = of(memory.clone(), chunk).unwrap_err();
            assert!(why.contains(at), "{memory:x?}: {why}");
        }
        assert!(of(0x12040..0x15040, Some(0x12000..0x16000)).is_ok());
    }

    #[test]
    fn memory_that_is_not_in_one_mapping_is_refused() {
        for memory in [
            0x38000..0x51000,
            0x58000..0x68000,
            0x70000..0x71000,
            0x90000..0x91000,
        ] {
            assert!(of(memory, None).unwrap_err().contains("no mapping"));
        }
    }

    #[test]
    fn a_chunk_is_known_where_malloc_mapped_it_and_only_there() {
        // More than the most from which glibc maps each chunk.
        let big = vec![1_u8; 40 << 20];
        let small: Vec<Vec<u8>> = (0..8).map(|_| vec![1; 5000]).collect();
        let of = |memory: &[u8]| {
            let start = memory.as_ptr().expose_provenance();
            // SAFETY: glibc's header lies there.
            let chunk = unsafe { chunk_of_malloc(start, PAGE) }?;
            Some(chunk.start <= start && start + memory.len() <= chunk.end)
        };
        assert_eq!(of(&big), Some(true));
        assert!(small.iter().all(|it| of(it).is_none()));
        assert_eq!(of(&big[4096..8192]), None);
    }
}
