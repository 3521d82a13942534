//! What this machine offers for a region's memory, read from the text files of `/sys`.
//!
//! Numbers and words for those who decide; decides nothing. Below a root that tests choose. What
//! cannot be read is not offered.

use std::fs;
use std::path::{Path, PathBuf};

use crate::launcher;

use super::mapping;
use super::pages::{GIANT, LARGE, Pages};

/// A machine, or what a test made up.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    /// Where `/sys` and `/proc` are.
    pub(super) root: PathBuf,
    pub(super) cores: usize,
    /// How many processes like this one a launcher started on it.
    pub(super) processes: usize,
    /// Whether the kernel can fill a mapping by itself, and say so when it cannot.
    pub(super) populates: bool,
    /// Whether the kernel puts pages together to huge ones when it is told to.
    pub(super) collapses: bool,
}

/// The system's pool of huge pages of one size, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pool {
    pub(super) total: usize,
    /// Neither in use nor promised to anybody.
    pub(super) free: usize,
    /// What the kernel may add of its own accord.
    pub(super) more: usize,
}

/// `transparent_hugepage/enabled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transparent {
    /// Here for those who ask, or for everybody.
    Here,
    /// Turned off.
    Never,
    /// This kernel has none.
    Absent,
}

/// How shared memory gets transparent huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shared {
    /// At a touch, where they are asked for: `shmem_enabled`.
    Touched,
    /// Put together when the kernel is told to.
    Collapsed,
    /// Turned off, for those who ask, too.
    Denied,
    /// Not without `shmem_enabled`: the kernel is older than what puts them together.
    TooOld,
}

/// Where the kernel keeps what it does about transparent huge pages.
const TRANSPARENT: &str = "sys/kernel/mm/transparent_hugepage";

impl Machine {
    /// This one.
    pub(super) fn here() -> Self {
        Self {
            root: "/".into(),
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            processes: launcher::processes().map_or(1, |(count, _)| count),
            populates: mapping::kernel_populates(),
            collapses: mapping::kernel_collapses(),
        }
    }

    /// The pool of such pages; nothing where the processor or the kernel has none.
    pub(super) fn pool(&self, pages: Pages) -> Option<Pool> {
        let folder = self.root.join(pool_folder(pages)?);
        let number = |name: &str| number(&folder.join(name));
        let total = number("nr_hugepages")?;
        let used_beyond = number("surplus_hugepages").unwrap_or(0);
        let free = number("free_hugepages")?;
        Some(Pool {
            total,
            free: free.saturating_sub(number("resv_hugepages").unwrap_or(0)),
            more: number("nr_overcommit_hugepages")
                .unwrap_or(0)
                .saturating_sub(used_beyond),
        })
    }

    pub(super) fn transparent(&self) -> Transparent {
        match self.mode("enabled").as_deref() {
            Some("never") => Transparent::Never,
            Some(_) => Transparent::Here,
            None => Transparent::Absent,
        }
    }

    /// How shared memory gets huge pages, where they are not turned off for all memory.
    pub(super) fn shared(&self) -> Shared {
        let all = self.mode("shmem_enabled");
        // Newer kernels have a setting for each size, which may leave it to that for all.
        let mode = match self.mode("hugepages-2048kB/shmem_enabled").as_deref() {
            None | Some("inherit") => all.as_deref(),
            // Of the size itself, and not even who tells the kernel to gets them.
            Some("never") => Some("deny"),
            Some(_) if all.as_deref() == Some("deny") => Some("deny"),
            Some(_) => Some("advise"),
        };
        match mode {
            Some("deny") => Shared::Denied,
            None | Some("never") if self.collapses => Shared::Collapsed,
            None | Some("never") => Shared::TooOld,
            Some(_) => Shared::Touched,
        }
    }

    /// The word in brackets; nothing where there is no such file.
    fn mode(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(TRANSPARENT).join(name)).ok()?;
        let (_, rest) = text.split_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    }

    /// The NUMA nodes that have memory; none where the kernel knows no nodes.
    pub(super) fn nodes(&self) -> Vec<u32> {
        let path = self.root.join("sys/devices/system/node/has_memory");
        fs::read_to_string(path).map_or_else(|_| Vec::new(), |text| list(&text))
    }

    /// The node of the PCI device at this address, for instance `0000:1B:00.0`.
    pub(super) fn node_of(&self, pci_address: &str) -> Option<u32> {
        let folder = pci_address.to_ascii_lowercase();
        let path = self.root.join("sys/bus/pci/devices").join(folder);
        // -1 where the firmware does not say.
        fs::read_to_string(path.join("numa_node"))
            .ok()?
            .trim()
            .parse()
            .ok()
    }
}

/// Where the kernel keeps the numbers of a pool.
pub(super) fn pool_folder(pages: Pages) -> Option<&'static str> {
    match pages.unit() {
        GIANT => Some("sys/kernel/mm/hugepages/hugepages-1048576kB"),
        LARGE => Some("sys/kernel/mm/hugepages/hugepages-2048kB"),
        _ => None,
    }
}

fn number(path: &Path) -> Option<usize> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// A list as the kernel writes it: `0-3,8`.
fn list(text: &str) -> Vec<u32> {
    let ranges = text.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
pub(super) mod tests;
