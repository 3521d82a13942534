//! The memory control group that leaves least, v1 or v2: its limit and what is in use.
//!
//! The engine's budget reads the same files (cxx-bridge/src/budget/limits.rs) for one number, what is
//! left. People need to see what that is made of, and which group to change; a test compares the two.

use serde::Serialize;

use super::files::{Files, field};

/// One group with a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cgroup {
    /// 1 or 2.
    pub version: u32,
    /// The file that holds the limit, from the root.
    pub file: String,
    /// The limit in bytes.
    pub limit: u64,
    /// What is in use, in bytes.
    pub used: u64,
    /// The part of it that is cache, which the kernel drops first.
    pub cache: u64,
}

/// Above this, v1 means that there is no limit.
const UNLIMITED: u64 = 1 << 60;

/// Version, mount, limit, usage, and the line of `memory.stat` with the cache.
type Version = (u32, &'static str, &'static str, &'static str, &'static str);

const V1: Version = (
    1,
    "sys/fs/cgroup/memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "total_inactive_file ",
);
const V2: Version = (
    2,
    "sys/fs/cgroup",
    "memory.max",
    "memory.current",
    "inactive_file ",
);

impl Cgroup {
    /// The one that leaves least, of this process's group and all above it.
    pub fn read(files: &Files) -> Option<Self> {
        let text = files.text("proc/self/cgroup")?;
        let groups = text.lines().flat_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let version = match fields.next() {
                Some("") => Some(V2),
                Some(list) if list.split(',').any(|it| it == "memory") => Some(V1),
                _ => None,
            };
            let path = fields.next().unwrap_or_default();
            version.map_or_else(Vec::new, |version| chain(files, version, path))
        });
        groups.min_by_key(Self::left)
    }

    /// What may still be taken, in bytes; cache does not count as taken.
    pub fn left(&self) -> u64 {
        self.limit
            .saturating_sub(self.used.saturating_sub(self.cache))
    }

    fn at(files: &Files, version: Version, folder: &str) -> Option<Self> {
        let (version, _, limit, used, cache) = version;
        let file = format!("{folder}/{limit}");
        let limit = files.number(&file).filter(|it| *it < UNLIMITED)?;
        let stat = files
            .text(&format!("{folder}/memory.stat"))
            .unwrap_or_default();
        Some(Self {
            version,
            limit,
            used: files.number(&format!("{folder}/{used}"))?,
            cache: field(&stat, cache)
                .and_then(|it| it.parse().ok())
                .unwrap_or(0),
            file: format!("/{file}"),
        })
    }
}

/// The mount and each folder down to the group. In a container the path is often the host's, and
/// only the mount is there.
fn chain(files: &Files, version: Version, path: &str) -> Vec<Cgroup> {
    let mut folder = version.1.to_owned();
    let mut found: Vec<_> = Cgroup::at(files, version, &folder).into_iter().collect();
    for part in path.split('/').filter(|it| !matches!(*it, "" | "." | "..")) {
        folder = format!("{folder}/{part}");
        found.extend(Cgroup::at(files, version, &folder));
    }
    found
}
