//! What this machine offers for a region's memory: cores, kernel features, pools, NUMA nodes.
//!
//! Decides nothing. `pinbuddy-machine` reads the files.

use std::path::PathBuf;

use pinbuddy_machine::{
    Files, POOLS, Pool, Shared, node_of, nodes_with_memory, nodes_with_processors, shared_of_size, transparent_mode,
};

use pinbuddy_store::launcher;

use super::mapping;
use super::pages::{self, Pages, Sizes};

/// A machine, or one that a test made up.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    /// Where `/sys` and `/proc` are.
    pub(super) root: PathBuf,
    /// Its pages.
    pub(super) sizes: Sizes,
    pub(super) cores: usize,
    /// How many processes a launcher started on this machine.
    pub(super) processes: usize,
    /// Whether the kernel has `MADV_POPULATE_WRITE`.
    pub(super) populates: bool,
    /// Whether the kernel has `MADV_COLLAPSE`.
    pub(super) collapses: bool,
}

/// `transparent_hugepage/enabled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transparent {
    /// On for memory that asks, or for all.
    Here,
    /// Turned off.
    Never,
    /// This kernel has none.
    Absent,
}

impl Machine {
    /// This machine. A debug build reads files of a made-up one, if `PINBUDDY_SIM_MACHINE` names a folder with its `sys`
    /// and `proc`.
    pub(super) fn here() -> Self {
        let made_up = std::env::var_os("PINBUDDY_SIM_MACHINE").filter(|_| cfg!(debug_assertions));
        Self {
            root: made_up.unwrap_or_else(|| "/".into()).into(),
            sizes: pages::sizes(),
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            processes: launcher::processes().map_or(1, |(count, _)| count),
            populates: mapping::kernel_populates(),
            collapses: mapping::kernel_collapses(),
        }
    }

    /// The pool of such pages; `None` if the processor or the kernel has none.
    pub(super) fn pool(&self, pages: Pages) -> Option<Pool> {
        Pool::read(&self.files(), &self.pool_folder(pages)?)
    }

    pub(super) fn transparent(&self) -> Transparent {
        match self.mode("enabled").as_deref() {
            Some("never") => Transparent::Never,
            Some(_) => Transparent::Here,
            None => Transparent::Absent,
        }
    }

    /// How shared memory gets huge pages, unless they are turned off for all memory.
    pub(super) fn shared(&self) -> Shared {
        let own = self.mode(&shared_of_size(self.sizes.large));
        let all = self.mode("shmem_enabled");
        Shared::of(all.as_deref(), own.as_deref(), self.collapses)
    }

    /// The word in brackets; `None` if there is no such file.
    fn mode(&self, name: &str) -> Option<String> {
        transparent_mode(&self.files(), name)
    }

    /// The NUMA nodes that have memory; none if the kernel knows no nodes.
    pub(super) fn nodes(&self) -> Vec<u32> {
        nodes_with_memory(&self.files())
    }

    /// Those of them that devices can be beside: memory of a device's own, or behind CXL, has no processors.
    pub(super) fn nodes_of_devices(&self) -> Vec<u32> {
        let (mut nodes, processors) = (self.nodes(), nodes_with_processors(&self.files()));
        nodes.retain(|it| processors.is_empty() || processors.contains(it));
        nodes
    }

    /// The node of the PCI device at this address, for instance `0000:1B:00.0`.
    pub(super) fn node_of(&self, pci_address: &str) -> Option<u32> {
        node_of(&self.files(), pci_address)
    }

    /// The kernel's folder with the numbers of a pool.
    pub(super) fn pool_folder(&self, pages: Pages) -> Option<String> {
        let kib = pages.unit(self.sizes) >> 10;
        pages.are_of_a_pool().then(|| format!("{POOLS}/hugepages-{kib}kB"))
    }

    /// The kernel's files.
    pub(super) fn files(&self) -> Files {
        Files::below(&self.root)
    }
}

#[cfg(test)]
pub(super) mod tests;
