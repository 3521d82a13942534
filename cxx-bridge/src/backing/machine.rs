//! What this machine offers for a region's memory, read from the text files of `/sys`.
//!
//! Numbers and words for those who decide; decides nothing. Below a root that tests choose. What
//! cannot be read is not offered.

use std::fs;
use std::path::{Path, PathBuf};

use crate::launcher;

use super::pages::{self, GIANT, LARGE, Pages};

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

impl Machine {
    /// This one.
    pub(super) fn here() -> Self {
        Self {
            root: "/".into(),
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            processes: launcher::processes().map_or(1, |(count, _)| count),
            populates: pages::kernel_populates(),
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
        let path = self.root.join("sys/kernel/mm/transparent_hugepage/enabled");
        match fs::read_to_string(path) {
            Ok(text) if text.contains("[never]") => Transparent::Never,
            Ok(_) => Transparent::Here,
            Err(_) => Transparent::Absent,
        }
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
pub(super) mod tests {
    use super::*;

    /// A machine of these files, with four cores and a kernel of today; the folder goes with it.
    pub(in crate::backing) fn made_up(files: &[(&str, &str)]) -> (Machine, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let machine = Machine {
            root: folder.path().to_owned(),
            cores: 4,
            processes: 1,
            populates: true,
        };
        (machine, folder)
    }

    const POOL: &str = "sys/kernel/mm/hugepages/hugepages-2048kB";

    #[test]
    fn what_is_promised_to_others_is_not_free() {
        let at = |name: &str| format!("{POOL}/{name}");
        let (machine, _folder) = made_up(&[
            (&at("nr_hugepages"), "100\n"),
            (&at("free_hugepages"), "60\n"),
            (&at("resv_hugepages"), "20\n"),
            (&at("nr_overcommit_hugepages"), "8\n"),
            (&at("surplus_hugepages"), "3\n"),
        ]);
        let pool = machine.pool(Pages::Large).unwrap();
        assert_eq!((pool.total, pool.free, pool.more), (100, 40, 5));
        assert_eq!(machine.pool(Pages::Giant), None);
        assert_eq!(machine.pool(Pages::Transparent), None);
    }

    #[test]
    fn the_mode_of_transparent_pages_is_the_word_in_brackets() {
        let path = "sys/kernel/mm/transparent_hugepage/enabled";
        for (text, expected) in [
            ("always [madvise] never\n", Transparent::Here),
            ("[always] madvise never\n", Transparent::Here),
            ("always madvise [never]\n", Transparent::Never),
        ] {
            assert_eq!(made_up(&[(path, text)]).0.transparent(), expected);
        }
        assert_eq!(made_up(&[]).0.transparent(), Transparent::Absent);
    }

    #[test]
    fn nodes_are_listed_as_the_kernel_does() {
        let path = "sys/devices/system/node/has_memory";
        for (text, nodes) in [
            ("0\n", vec![0]),
            ("0-1,4\n", vec![0, 1, 4]),
            ("\n", vec![]),
            ("nonsense\n", vec![]),
        ] {
            assert_eq!(made_up(&[(path, text)]).0.nodes(), nodes);
        }
        assert_eq!(made_up(&[]).0.nodes(), [] as [u32; 0]);
    }

    #[test]
    fn a_device_is_found_by_its_address() {
        let at = |address: &str| format!("sys/bus/pci/devices/{address}/numa_node");
        let (machine, _folder) =
            made_up(&[(&at("0000:1b:00.0"), "1\n"), (&at("0000:03:00.0"), "-1\n")]);
        assert_eq!(machine.node_of("0000:1B:00.0"), Some(1));
        assert_eq!(machine.node_of("0000:03:00.0"), None);
        assert_eq!(machine.node_of("0000:ff:00.0"), None);
    }

    #[test]
    fn this_machine_can_be_read() {
        let machine = Machine::here();
        assert!(machine.cores >= 1 && machine.processes >= 1);
        let _ = (
            machine.pool(Pages::Large),
            machine.transparent(),
            machine.nodes(),
        );
    }
}
