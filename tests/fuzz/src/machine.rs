//! The readers of what the kernel says: of `/proc`, `/sys` and control groups.

use std::cell::OnceCell;
use std::fs;

use pinbuddy_machine::claims::claims;
use pinbuddy_machine::{
    Cgroup, Files, Limits, POOLS, Pool, node_of, nodes, nodes_with_memory, smaps, transparent_mode,
};
use tempfile::TempDir;

/// Files that are read; a part of the bytes each.
const FILES: [&str; 13] = [
    "proc/meminfo",
    "proc/self/cgroup",
    "sys/fs/cgroup/memory.max",
    "sys/fs/cgroup/memory.current",
    "sys/fs/cgroup/memory.stat",
    "sys/fs/cgroup/memory/memory.limit_in_bytes",
    "proc/self/status",
    "proc/self/limits",
    "sys/devices/system/node/has_memory",
    "sys/devices/system/node/node0/meminfo",
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
    "sys/kernel/mm/transparent_hugepage/enabled",
];

/// What stands between two files.
const BETWEEN: &[u8] = b"\n==\n";

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

/// Reads the files of a machine whose kernel says absurd things.
pub fn run(bytes: &[u8]) {
    FOLDER.with(|folder| {
        let root = folder.get_or_init(made).path();
        let mut parts = split(bytes).into_iter();
        for file in FILES {
            fs::write(root.join(file), parts.next().unwrap_or_default()).unwrap();
        }
        let files = Files::below(root);
        let limits = Limits::read(&files);
        for limit in limits.all() {
            assert!(limits.least().is_some_and(|least| least.bytes <= limit.bytes));
        }
        if let Some(group) = Cgroup::tightest(&files) {
            assert!(group.left() <= group.limit);
            assert!(Cgroup::least_limit(&files).is_some_and(|it| it <= group.limit));
        }
        let _ = Limits::whole(&files);
        for node in nodes(&files) {
            assert_eq!(node.id, 0);
        }
        assert!(nodes_with_memory(&files).len() <= 1 << 16);
        let _ = Pool::read(&files, &format!("{POOLS}/hugepages-2048kB"));
        let _ = transparent_mode(&files, "enabled");
        let _ = node_of(&files, "0000:1B:00.0");
    });
}

fn made() -> TempDir {
    let root = crate::folder();
    for file in FILES {
        let file = root.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
    }
    root
}

fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(BETWEEN.len()).position(|it| it == BETWEEN) {
        parts.push(&rest[..at]);
        rest = &rest[at + BETWEEN.len()..];
    }
    parts.push(rest);
    parts
}

/// Reads the kernel's long lists: `smaps`, and locks.
pub fn lists(bytes: &[u8]) {
    let low = 0x7f00_0000_0000..0x7f00_1000_0000;
    let high = 0x7f00_4000_0000..0x7f00_5000_0000;
    smaps::read(bytes, &[low, high]);
    for claim in claims(&crate::text(bytes), None) {
        assert!(claim.bytes > 0, "{claim:?}");
    }
}
