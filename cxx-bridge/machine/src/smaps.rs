//! What the kernel says about the pages of parts of a process's memory: `/proc/self/smaps`.

use std::io::BufRead;
use std::ops::Range;

use crate::files::kib_field;

/// What it says of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Of the area's own page size, if that is more than the smallest.
    page_bytes: usize,
    transparent_bytes: usize,
    seen: bool,
}

impl Found {
    /// The size of most pages of a range of `bytes`, and how much of it has pages of more than `page`, the smallest size; `None`
    /// if the range was not found. Transparent huge pages have `large` bytes.
    pub fn pages(&self, bytes: usize, page: usize, large: usize) -> Option<(usize, usize)> {
        if !self.seen {
            None
        } else if self.page_bytes > page {
            Some((self.page_bytes, bytes))
        } else {
            let huge = self.transparent_bytes.min(bytes);
            let most = if huge * 2 >= bytes { large } else { page };
            Some((most, huge))
        }
    }
}

/// What `smaps` says about each of `ranges`, in their order. Files that are mapped may have names that are no text.
pub fn read(smaps: impl BufRead, ranges: &[Range<usize>]) -> Vec<Found> {
    let mut found = vec![Found::default(); ranges.len()];
    let mut at = None;
    for line in smaps.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        if let Some(start) = start(&line) {
            at = ranges.iter().position(|it| it.contains(&start));
            continue;
        }
        let Some(found) = at.and_then(|at| found.get_mut(at)) else {
            continue;
        };
        found.seen = true;
        let bytes = |label| kib_field(&line, label).and_then(|it| usize::try_from(it).ok());
        if let Some(bytes) = bytes("KernelPageSize:") {
            found.page_bytes = found.page_bytes.max(bytes);
        } else if let Some(bytes) = bytes("AnonHugePages:").or_else(|| bytes("ShmemPmdMapped:")) {
            // For private and for shared memory: an area has one of the two.
            found.transparent_bytes = found.transparent_bytes.saturating_add(bytes);
        }
    }
    found
}

/// Where the area begins whose first line this is: `7f0000000000-7f0040000000 rw-p ...`.
fn start(line: &str) -> Option<usize> {
    let (start, rest) = line.split_once('-')?;
    usize::from_str_radix(rest.split_once(' ')?.0, 16).ok()?;
    usize::from_str_radix(start, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4 << 10;
    const LARGE: usize = 2 << 20;

    /// A mapped file whose name is no text hid every area behind it, and absurd sizes overflowed.
    #[test]
    fn names_that_are_no_text_and_absurd_sizes_hide_nothing() {
        let region = 0x7f00_0000_0000..0x7f00_1000_0000;
        let mut text = b"555555554000-555555556000 r--p 00000000 fd:00 131 /tmp/\xff\xfe\n".to_vec();
        text.extend_from_slice(b"7f0000000000-7f0010000000 rw-p 00000000 00:00 0\n");
        text.extend_from_slice(b"AnonHugePages:  2048 kB\n");
        let huge = |text: &[u8]| read(text, std::slice::from_ref(&region))[0].transparent_bytes;
        assert_eq!(huge(&text), LARGE);
        text.extend_from_slice(b"AnonHugePages:  18014398509481983 kB\n");
        assert_eq!(huge(&text), usize::MAX);
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
        let found = read(SMAPS.as_bytes(), &ranges);
        let pages: Vec<_> = found.iter().zip(&ranges).map(|(it, range)| it.pages(range.len(), PAGE, LARGE)).collect();
        assert_eq!(
            pages,
            [
                Some((LARGE, 256 << 20)),
                Some((LARGE, 256 << 20)),
                Some((PAGE, 2 << 20)),
                Some((LARGE, 254 << 20)),
                Some((LARGE, 256 << 20)),
                None
            ]
        );
    }
}
