//! What kind of mapping memory lies in, as `/proc/self/maps` says. Decides nothing.

use pinbuddy_machine::Files;

use super::runs::Pages;

/// What all areas of some pages have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Areas {
    /// The process may write to all of it.
    pub(super) writable: bool,
    /// All of it is shared: stores reach the file, or other processes.
    pub(super) shared: bool,
    /// All of it is private, and no file's.
    pub(super) anonymous: bool,
}

impl Areas {
    /// The areas of `pages`. The error is for people.
    pub(super) fn read(files: &Files, pages: &Pages) -> Result<Self, String> {
        let text = files
            .text("proc/self/maps")
            .ok_or("/proc/self/maps cannot be read")?;
        Self::of(&text, pages)
    }

    fn of(maps: &str, pages: &Pages) -> Result<Self, String> {
        let mut all = Self {
            writable: true,
            shared: true,
            anonymous: true,
        };
        let mut next = pages.start;
        for (area, flags, inode) in maps.lines().filter_map(parse) {
            if area.end <= next || next >= pages.end {
                continue;
            }
            if area.start > next || !flags.starts_with('r') {
                break;
            }
            let shared = flags.ends_with('s');
            all.writable &= flags.contains('w');
            all.shared &= shared;
            all.anonymous &= !shared && inode == "0";
            next = area.end;
        }
        if next < pages.end {
            return Err(format!(
                "found nothing that can be read at {next:#x}, expected mapped memory up to {:#x}",
                pages.end
            ));
        }
        Ok(all)
    }
}

fn parse(line: &str) -> Option<(Pages, &str, &str)> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let number = |it| usize::from_str_radix(it, 16).ok();
    let flags = words.next()?;
    Some((number(start)?..number(end)?, flags, words.nth(2)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
1000-3000 rw-p 00000000 00:00 0 [heap]
3000-4000 rw-p 00000000 00:00 0
5000-6000 r--s 00000000 08:01 77 /data/model.safetensors
6000-7000 rw-s 00000000 00:19 78 /dev/shm/torch_1
7000-8000 ---p 00000000 00:00 0
";

    #[test]
    fn areas_are_what_all_of_their_pages_are() {
        let of = |pages: Pages| Areas::of(MAPS, &pages);
        let are = |writable, shared, anonymous| {
            Ok(Areas {
                writable,
                shared,
                anonymous,
            })
        };
        assert_eq!(of(0x1000..0x4000), are(true, false, true));
        assert_eq!(of(0x5000..0x6000), are(false, true, false));
        assert_eq!(of(0x5000..0x7000), are(false, true, false));
        assert_eq!(of(0x6000..0x7000), are(true, true, false));
        for (pages, at) in [
            (0x3000..0x6000, "0x4000"),
            (0x6000..0x8000, "0x7000"),
            (0x9000..0xa000, "0x9000"),
        ] {
            assert!(of(pages).unwrap_err().contains(at));
        }
    }
}
