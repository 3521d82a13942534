//! Invented machines: the kernel's files below a folder, and answers that are not files.

use std::fs;
use std::path::Path;

use crate::doctor::building::{Building, Interpreter, Program};
use crate::doctor::driver::{CudaVersion, Driver};
use crate::doctor::room::Disk;
use crate::doctor::{Asked, Found};

const KIB_PER_GIB: u64 = 1 << 20;

/// An invented machine's root.
pub struct Root(tempfile::TempDir);

impl Root {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn file(self, path: &str, text: impl AsRef<str>) -> Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{}\n", text.as_ref())).unwrap();
        self
    }

    pub fn memory(self, total: u64, available: u64) -> Self {
        let (total, available) = (total * KIB_PER_GIB, available * KIB_PER_GIB);
        let text = format!(
            "MemTotal:       {total} kB\nMemAvailable:   {available} kB\nHugepagesize:       2048 kB"
        );
        self.file("proc/meminfo", text)
    }

    pub fn lock(self, soft: &str, hard: &str, capabilities: &str) -> Self {
        let limits = format!("Max locked memory         {soft}    {hard}    bytes");
        self.file("proc/self/limits", limits)
            .file("proc/self/status", format!("CapEff:\t{capabilities}"))
    }

    pub fn pool(self, folder: &str, kib: u64, total: u64, free: u64) -> Self {
        let folder = format!("{folder}/hugepages-{kib}kB");
        self.file(&format!("{folder}/nr_hugepages"), total.to_string())
            .file(&format!("{folder}/free_hugepages"), free.to_string())
    }

    pub fn transparent(self, enabled: &str, defrag: &str) -> Self {
        let folder = "sys/kernel/mm/transparent_hugepage";
        self.file(&format!("{folder}/enabled"), enabled)
            .file(&format!("{folder}/defrag"), defrag)
    }

    pub fn node(self, id: u64, cpus: &str, total: u64, free: u64) -> Self {
        let (total, free) = (total * KIB_PER_GIB, free * KIB_PER_GIB);
        let folder = format!("sys/devices/system/node/node{id}");
        let text =
            format!("Node {id} MemTotal:       {total} kB\nNode {id} MemFree:        {free} kB");
        self.file(&format!("{folder}/cpulist"), cpus)
            .file(&format!("{folder}/meminfo"), text)
    }

    pub fn gpu(self, address: &str, node: i64) -> Self {
        let folder = format!("sys/bus/pci/devices/{address}");
        self.file(&format!("{folder}/vendor"), "0x10de")
            .file(&format!("{folder}/class"), "0x030200")
            .file(&format!("{folder}/numa_node"), node.to_string())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// A machine with all build programs and nothing else.
pub fn asked(free_disk: u64) -> Asked {
    let programs = [
        ("g++", "g++ (Debian 12.2.0-14) 12.2.0"),
        ("cargo", "cargo 1.95.0 (f2d3ce0bd 2026-03-21)"),
        ("rustc", "rustc 1.95.0 (59807616e 2026-04-14)"),
        ("git", "git version 2.47.3"),
    ];
    let programs = programs.map(|(name, version)| Program {
        name,
        version: Some(version.into()),
    });
    Asked {
        python: "python3".into(),
        driver: Driver::Absent,
        runtime: None,
        simulated: None,
        installed: Some(found(None, None)),
        building: Building {
            python: Interpreter::Fits {
                what: "Python 3.11.7 (cp311-cp311, glibc 2.36, x86_64)".into(),
            },
            programs: programs.into(),
            fetched: false,
            disks: vec![Disk::made_up(
                "/home/user/.cache/pinbuddy",
                free_disk,
                4_800_000_000,
                7_000_000_000,
            )],
        },
        needed: CudaVersion::parse("13.2"),
    }
}

pub fn found(torch: Option<&Path>, runtime: Option<&str>) -> Found {
    let answer = serde_json::json!({
        "torch": torch,
        "runtime": runtime,
        "pip": ["venv", "ensurepip", "pip"],
    });
    serde_json::from_value(answer).unwrap()
}
