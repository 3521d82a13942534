//! Huge pages: the pools that an administrator sets aside, and the kernel's transparent ones.

use serde::Serialize;

use crate::files::{Files, kib_field};

/// The pools of the whole machine: a folder `hugepages-NkB` for each size.
pub const POOLS: &str = "sys/kernel/mm/hugepages";

/// The kernel's folder with the settings of transparent huge pages.
pub const TRANSPARENT: &str = "sys/kernel/mm/transparent_hugepage";

/// A pool of huge pages of one size, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// All of them.
    pub total: usize,
    /// Neither in use nor reserved.
    pub free: usize,
    /// How many the kernel may add by itself.
    pub more: usize,
}

impl Pool {
    /// The pool in a folder, of the machine or of a node; `None` if the processor or the kernel has none. Only
    /// the machine's pool counts reserved pages.
    pub fn read(files: &Files, folder: &str) -> Option<Self> {
        let number = |name: &str| {
            let number = files.number(&format!("{folder}/{name}"))?;
            usize::try_from(number).ok()
        };
        let or_none = |name| number(name).unwrap_or(0);
        Some(Self {
            total: number("nr_hugepages")?,
            free: number("free_hugepages")?.saturating_sub(or_none("resv_hugepages")),
            more: or_none("nr_overcommit_hugepages").saturating_sub(or_none("surplus_hugepages")),
        })
    }
}

/// The size of the kernel's transparent huge pages where the smallest have `page` bytes. A kernel without them has the same
/// size in a pool: what one page of page table maps, with eight bytes an entry.
pub fn huge_page_bytes(files: &Files, page: usize) -> usize {
    let said = files.number(&format!("{TRANSPARENT}/hpage_pmd_size"));
    let said = said.and_then(|it| usize::try_from(it).ok());
    said.filter(|it| it.is_power_of_two() && *it > page).unwrap_or(page * (page / 8))
}

/// The size of the smallest pages, as the kernel says it of this program's memory; 4 KiB where it does not.
pub fn page_bytes(files: &Files) -> usize {
    let said = files.text("proc/self/smaps");
    let said = said.and_then(|it| kib_field(&it, "KernelPageSize:"));
    let said = said.and_then(|it| usize::try_from(it).ok());
    said.filter(|it| it.is_power_of_two()).unwrap_or(4 << 10)
}

/// The word in brackets in a file below [`TRANSPARENT`]; `None` if there is no such file.
pub fn transparent_mode(files: &Files, name: &str) -> Option<String> {
    let text = files.text(&format!("{TRANSPARENT}/{name}"))?;
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// How shared memory gets transparent huge pages, unless they are turned off for all memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// At a touch, for memory that asks: `shmem_enabled` is on.
    Touched,
    /// By `MADV_COLLAPSE`.
    Collapsed,
    /// Turned off, even for memory that asks.
    Denied,
    /// Only with `shmem_enabled`: the kernel has no `MADV_COLLAPSE`.
    TooOld,
}

impl Shared {
    /// By `shmem_enabled` for `all` memory and, on newer kernels, for that of the huge pages' `own` size, which may defer to the
    /// former. `collapses`: whether the kernel has `MADV_COLLAPSE`.
    pub fn of(all: Option<&str>, own: Option<&str>, collapses: bool) -> Self {
        let all = all.unwrap_or("never");
        match (all, own.unwrap_or("inherit")) {
            // `never` of the size itself refuses MADV_COLLAPSE, too.
            ("deny", _) | (_, "never") => Self::Denied,
            ("never", "inherit") if collapses => Self::Collapsed,
            ("never", "inherit") => Self::TooOld,
            _ => Self::Touched,
        }
    }
}

/// Where `shmem_enabled` is for huge pages of this size alone, below [`TRANSPARENT`].
pub fn shared_of_size(huge: usize) -> String {
    format!("hugepages-{}kB/shmem_enabled", huge >> 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_has_a_mode_of_its_own_and_newer_kernels_one_for_each_size() {
        use Shared::{Collapsed, Denied, TooOld, Touched};
        for (all, own, new, old) in [
            (None, None, Collapsed, TooOld),
            (Some("never"), None, Collapsed, TooOld),
            (Some("advise"), None, Touched, Touched),
            (Some("force"), None, Touched, Touched),
            (Some("deny"), None, Denied, Denied),
            (Some("never"), Some("inherit"), Collapsed, TooOld),
            (Some("never"), Some("advise"), Touched, Touched),
            (Some("advise"), Some("never"), Denied, Denied),
            (Some("deny"), Some("always"), Denied, Denied),
        ] {
            let of = |collapses| Shared::of(all, own, collapses);
            assert_eq!((of(true), of(false)), (new, old), "{all:?} {own:?}");
        }
    }

    #[test]
    fn the_smallest_pages_are_this_machines() {
        // The kernel maps whole pages, so their size divides each address in its list.
        let here = Files::below("/".as_ref());
        let list = here.text("proc/self/smaps").unwrap();
        let address = |line: &str| usize::from_str_radix(line.split_once('-')?.0, 16).ok();
        let all = list.lines().filter_map(address).fold(0, |all, it| all | it);
        assert_eq!(page_bytes(&here), 1 << all.trailing_zeros());
        let folder = tempfile::tempdir().unwrap();
        let files = Files::below(folder.path());
        assert_eq!(page_bytes(&files), 4 << 10);
        std::fs::create_dir_all(folder.path().join("proc/self")).unwrap();
        let text = "400000-410000 r-xp 0 0:0 0 /a\nKernelPageSize:       64 kB\nMMUPageSize:       64 kB\n";
        std::fs::write(folder.path().join("proc/self/smaps"), text).unwrap();
        assert_eq!(page_bytes(&files), 64 << 10);
    }

    #[test]
    fn a_huge_page_is_what_the_kernel_says_or_what_a_page_of_page_table_maps() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::below(folder.path());
        let at = folder.path().join(TRANSPARENT);
        std::fs::create_dir_all(&at).unwrap();
        let (kib, mib) = (1 << 10, 1 << 20);
        for (page, said, huge) in [
            (4 * kib, None, 2 * mib),
            (16 * kib, None, 32 * mib),
            (64 * kib, None, 512 * mib),
            (64 * kib, Some(2 * mib), 2 * mib),
            (4 * kib, Some(4 * kib), 2 * mib),
            (4 * kib, Some(3 * mib), 2 * mib),
        ] {
            let file = at.join("hpage_pmd_size");
            let _ = std::fs::remove_file(&file);
            if let Some(said) = said {
                std::fs::write(&file, format!("{said}\n")).unwrap();
            }
            assert_eq!(huge_page_bytes(&files, page), huge, "{page} {said:?}");
        }
    }
}
