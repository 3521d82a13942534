//! Where a region's memory lies: its backing, its pages as the kernel reports them, its node.
//!
//! Reads `/proc/self/smaps`, which takes milliseconds and the kernel's lock on the address space: only
//! for reports, once a region, never while memory is being pinned.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;

use pinbuddy_core::Region;

use super::numa;
use super::pages::{self, Sizes};

/// A region's placement, as in the statistics. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// `cuda` or `pages`.
    pub backing: &'static str,
    /// The size of most of its pages, if known.
    pub page_bytes: Option<usize>,
    /// How much of it has pages of more than the smallest size, if known.
    pub huge_bytes: Option<usize>,
    /// The NUMA node of all of it, if that is known and only one.
    pub numa_node: Option<u32>,
}

impl Placement {
    /// Memory that CUDA allocated: nothing else is known of it.
    pub(super) const CUDA: Self = Self {
        backing: "cuda",
        page_bytes: None,
        huge_bytes: None,
        numa_node: None,
    };
}

/// The placement of these regions of our own, in their order.
pub(super) fn look(regions: &[Region]) -> Vec<Placement> {
    let ranges: Vec<_> = regions
        .iter()
        .map(|it| it.base..it.base + it.bytes)
        .collect();
    let found = File::open("/proc/self/smaps")
        .map(|file| read_smaps(BufReader::new(file), &ranges))
        .unwrap_or_default();
    let placement = |(n, region): (usize, &Region)| {
        let pages = found
            .get(n)
            .and_then(|it| it.pages(region.bytes, pages::sizes()));
        let lies = numa::where_it_lies(region.base, region.bytes);
        Placement {
            backing: "pages",
            page_bytes: pages.map(|(page, _)| page),
            huge_bytes: pages.map(|(_, huge)| huge),
            numa_node: lies.filter(|it| it.percent == 100).map(|it| it.node),
        }
    };
    regions.iter().enumerate().map(placement).collect()
}

/// What the kernel says about the pages of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Of the area's own page size, if that is more than the smallest.
    page_bytes: usize,
    transparent_bytes: usize,
    seen: bool,
}

impl Found {
    /// The size of most pages of a region of `bytes`, and how much of it has larger pages than the
    /// smallest; `None` if the range was not found.
    pub(super) fn pages(&self, bytes: usize, sizes: Sizes) -> Option<(usize, usize)> {
        if !self.seen {
            None
        } else if self.page_bytes > sizes.page {
            Some((self.page_bytes, bytes))
        } else {
            let huge = self.transparent_bytes.min(bytes);
            let most = if huge * 2 >= bytes {
                sizes.large
            } else {
                sizes.page
            };
            Some((most, huge))
        }
    }
}

/// For [`crate::readers`]: whether each of `ranges` was seen, and its transparent huge pages in bytes.
pub(crate) fn of(smaps: &[u8], ranges: &[Range<usize>]) -> Vec<(bool, usize)> {
    let found = read_smaps(smaps, ranges).into_iter();
    found.map(|it| (it.seen, it.transparent_bytes)).collect()
}

/// What `smaps` says about each of `ranges`, in their order. Files that are mapped may have names that
/// are no text.
pub(super) fn read_smaps(smaps: impl BufRead, ranges: &[Range<usize>]) -> Vec<Found> {
    let mut found = vec![Found::default(); ranges.len()];
    let mut at = None;
    for line in smaps.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        if let Some(area) = area(&line) {
            at = ranges.iter().position(|it| it.contains(&area.start));
            continue;
        }
        let Some(found) = at.and_then(|at| found.get_mut(at)) else {
            continue;
        };
        found.seen = true;
        if let Some(bytes) = field(&line, "KernelPageSize:") {
            found.page_bytes = found.page_bytes.max(bytes);
        } else if let Some(bytes) =
            field(&line, "AnonHugePages:").or_else(|| field(&line, "ShmemPmdMapped:"))
        {
            // For private and for shared memory: an area has one of the two.
            found.transparent_bytes = found.transparent_bytes.saturating_add(bytes);
        }
    }
    found
}

/// The first line of an area: `7f0000000000-7f0040000000 rw-p ...`.
fn area(line: &str) -> Option<Range<usize>> {
    let (start, rest) = line.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(rest.split_once(' ')?.0, 16).ok()?;
    Some(start..end)
}

/// `AnonHugePages:   2048 kB`.
fn field(line: &str, name: &str) -> Option<usize> {
    let kib = line.strip_prefix(name)?.trim().strip_suffix("kB")?;
    kib.trim().parse::<usize>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::super::pages::tests::KERNELS;
    use super::*;

    const HERE: Sizes = KERNELS[0];

    /// A mapped file whose name is no text hid every area behind it, and absurd sizes overflowed.
    #[test]
    fn names_that_are_no_text_and_absurd_sizes_hide_nothing() {
        let region = 0x7f00_0000_0000..0x7f00_1000_0000;
        let mut text =
            b"555555554000-555555556000 r--p 00000000 fd:00 131 /tmp/\xff\xfe\n".to_vec();
        text.extend_from_slice(b"7f0000000000-7f0010000000 rw-p 00000000 00:00 0\n");
        text.extend_from_slice(b"AnonHugePages:  2048 kB\n");
        assert_eq!(of(&text, std::slice::from_ref(&region)), [(true, 2 << 20)]);
        text.extend_from_slice(b"AnonHugePages:  18014398509481983 kB\n");
        assert_eq!(
            of(&text, std::slice::from_ref(&region)),
            [(true, usize::MAX)]
        );
    }

    const SMAPS: &str = "\
555555554000-555555556000 r--p 00000000 fd:00 131 /usr/bin/python
KernelPageSize:        4 kB
AnonHugePages:         0 kB
7f0000000000-7f0010000000 rw-p 00000000 00:00 0
KernelPageSize:        4 kB
AnonHugePages:    131072 kB
VmFlags: rd wr mr mw me lo dc ac hg
7f0010000000-7f0020000000 rw-p 00000000 00:00 0
KernelPageSize:        4 kB
AnonHugePages:    131072 kB
7f0040000000-7f0050000000 rw-p 00000000 00:10 77 /anon_hugepage (deleted)
KernelPageSize:     2048 kB
AnonHugePages:         0 kB
7f0060000000-7f0061000000 rw-p 00000000 00:00 0
KernelPageSize:        4 kB
AnonHugePages:      2048 kB
ShmemPmdMapped:        0 kB
7f0070000000-7f0080000000 rw-s 00000000 00:01 77 /dev/zero (deleted)
KernelPageSize:        4 kB
AnonHugePages:         0 kB
ShmemPmdMapped:   260096 kB
VmFlags: rd wr sh mr mw me ms dd hg
7f0090000000-7f00a0000000 rw-s 00000000 00:10 78 /anon_hugepage (deleted)
KernelPageSize:     2048 kB
AnonHugePages:         0 kB
ShmemPmdMapped:        0 kB
";

    #[test]
    fn areas_are_told_apart_and_those_of_one_region_are_added_up() {
        let ranges = [
            0x7f0000000000..0x7f0020000000,
            0x7f0040000000..0x7f0050000000,
            0x7f0060000000..0x7f0061000000,
            0x7f0070000000..0x7f0080000000,
            0x7f0090000000..0x7f00a0000000,
            0x10000..0x20000,
        ];
        let found = read_smaps(SMAPS.as_bytes(), &ranges);
        let pages: Vec<_> = found
            .iter()
            .zip(&ranges)
            .map(|(it, range)| it.pages(range.len(), HERE))
            .collect();
        assert_eq!(
            pages,
            [
                Some((HERE.large, 256 << 20)),
                Some((HERE.large, 256 << 20)),
                Some((HERE.page, 2 << 20)),
                Some((HERE.large, 254 << 20)),
                Some((HERE.large, 256 << 20)),
                None
            ]
        );
    }
}
