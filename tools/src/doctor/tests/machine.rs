//! Invented machines: the kernel's files below a folder, and answers that are not files.

use std::fs;
use std::path::Path;

use crate::doctor::Asked;
use crate::doctor::driver::Driver;

const KIB_PER_GIB: u64 = 1 << 20;

/// An invented machine's root.
pub(crate) struct Root(tempfile::TempDir);

impl Root {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn file(self, path: &str, text: impl AsRef<str>) -> Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{}\n", text.as_ref())).unwrap();
        self
    }

    pub(crate) fn memory(self, total: u64, available: u64) -> Self {
        let (total, available) = (total * KIB_PER_GIB, available * KIB_PER_GIB);
        let text = format!(
            "MemTotal:       {total} kB\nMemAvailable:   {available} kB\nHugepagesize:       2048 kB"
        );
        self.file("proc/meminfo", text)
    }

    pub(crate) fn lock(self, soft: &str, hard: &str, capabilities: &str) -> Self {
        let limits = format!("Max locked memory         {soft}    {hard}    bytes");
        self.file("proc/self/limits", limits)
            .file("proc/self/status", format!("CapEff:\t{capabilities}"))
    }

    pub(crate) fn pool(self, folder: &str, kib: u64, total: u64, free: u64) -> Self {
        let folder = format!("{folder}/hugepages-{kib}kB");
        self.file(&format!("{folder}/nr_hugepages"), total.to_string())
            .file(&format!("{folder}/free_hugepages"), free.to_string())
    }

    pub(crate) fn transparent(self, enabled: &str, defrag: &str) -> Self {
        let folder = "sys/kernel/mm/transparent_hugepage";
        self.file(&format!("{folder}/enabled"), enabled)
            .file(&format!("{folder}/defrag"), defrag)
    }

    pub(crate) fn node(self, id: u64, cpus: &str, total: u64, free: u64) -> Self {
        let (total, free) = (total * KIB_PER_GIB, free * KIB_PER_GIB);
        let folder = format!("sys/devices/system/node/node{id}");
        let text =
            format!("Node {id} MemTotal:       {total} kB\nNode {id} MemFree:        {free} kB");
        self.file(&format!("{folder}/cpulist"), cpus)
            .file(&format!("{folder}/meminfo"), text)
    }

    pub(crate) fn gpu(self, address: &str, node: i64) -> Self {
        let folder = format!("sys/bus/pci/devices/{address}");
        self.file(&format!("{folder}/vendor"), "0x10de")
            .file(&format!("{folder}/class"), "0x030200")
            .file(&format!("{folder}/numa_node"), node.to_string())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// A machine with no driver.
pub(crate) fn asked() -> Asked {
    Asked {
        driver: Driver::Absent,
        simulated: None,
        needed: "13.2".parse().ok(),
    }
}
