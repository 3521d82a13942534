//! Free space on the disks that `build-wheel` and `venv` write to.

use std::path::PathBuf;

use serde::Serialize;

use super::finding::Finding;
use crate::build_wheel::{fetch, tree};
use crate::support::{disk, paths};
use crate::venv;

/// Space for cargo and the tool environment below target/, and for the fork wheel below dist/.
const TARGET: u64 = 400_000_000;
const WHEEL: u64 = 1_000_000_000;

/// One file system.
#[derive(Debug, Serialize)]
pub struct Disk {
    /// Our folders on it.
    pub folders: Vec<PathBuf>,
    /// In bytes.
    pub free: u64,
    /// The most that `build-wheel` writes, in bytes.
    pub build: u64,
    /// The most that `venv` writes besides, in bytes.
    pub venv: u64,
    #[serde(skip)]
    device: u64,
}

impl Disk {
    /// The file systems that building writes to; `fetched`: whether the official wheel is in the cache.
    pub fn look(cache: PathBuf, fetched: bool) -> Vec<Self> {
        // The tree is extracted again whenever its wheel is fetched.
        let fetch = if fetched { 0 } else { fetch::ROOM + tree::ROOM };
        let places = [
            (cache, fetch, 0),
            (paths::target(), TARGET, venv::ROOM),
            (paths::root().join("dist"), WHEEL, 0),
        ];
        let mut disks: Vec<Self> = Vec::new();
        for (folder, build, venv) in places {
            let Some(free) = disk::free(&folder) else {
                continue;
            };
            match disks.iter_mut().find(|it| it.device == free.device) {
                Some(disk) => {
                    disk.folders.push(folder);
                    disk.build += build;
                    disk.venv += venv;
                }
                None => disks.push(Self {
                    folders: vec![folder],
                    free: free.bytes,
                    build,
                    venv,
                    device: free.device,
                }),
            }
        }
        disks
    }

    /// An invented file system.
    #[cfg(test)]
    pub fn made_up(folder: &str, free: u64, build: u64, venv: u64) -> Self {
        Self {
            folders: vec![folder.into()],
            free,
            build,
            venv,
            device: 0,
        }
    }

    /// A finding.
    pub fn finding(&self) -> Finding {
        let gigabytes =
            |bytes: u64| format!("{}.{} GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10);
        let folders: Vec<_> = self.folders.iter().map(|it| paths::show(it)).collect();
        let (free, build) = (gigabytes(self.free), gigabytes(self.build));
        let folders = folders.join(", ");
        let value = format!("{free} free for {folders}; building takes {build}");
        let clean = "cargo clean";
        if self.free < self.build {
            return Finding::missing("disk", value)
                .run(clean)
                .run("export XDG_CACHE_HOME=DIR  # on a disk with room");
        }
        if self.free < self.build + self.venv {
            let value = format!("{value}, cargo xtask venv {} more", gigabytes(self.venv));
            return Finding::note("disk", value).run(clean);
        }
        Finding::ok("disk", value)
    }
}
