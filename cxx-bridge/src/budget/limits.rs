//! What the kernel says is left: for the machine, for this process's control group, for locking.
//!
//! Reads the text files of `/proc` and of control groups v1 and v2 below a root that tests choose.
//! Knows no policy. What cannot be read counts as no limit.

use std::fs;
use std::path::{Component, Path};

/// One limit, with its name for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What is left under it, in bytes.
    pub bytes: u64,
    /// What it is.
    pub name: &'static str,
}

/// What is left, in bytes; `None` where there is no such limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// `MemAvailable`: what the machine can give without swapping.
    pub available: Option<u64>,
    /// What the control group (and each one above it) still allows.
    pub cgroup: Option<u64>,
    /// `RLIMIT_MEMLOCK`, the soft limit, where somebody chose it for such a program: not where the
    /// process may pass it (`CAP_IPC_LOCK`), and not up to 64 MiB.
    pub locked: Option<u64>,
}

/// Above this, control groups v1 mean that there is no limit.
const UNLIMITED: u64 = 1 << 60;

impl Limits {
    /// What the files below `root` say.
    pub fn read(root: &Path) -> Self {
        Self {
            available: available(root),
            cgroup: cgroup(root),
            locked: locked(root),
        }
    }

    /// The least of them.
    pub fn least(&self) -> Option<Limit> {
        let named = [
            (self.available, "MemAvailable"),
            (self.cgroup, "memory that the control group leaves"),
            (self.locked, "RLIMIT_MEMLOCK"),
        ];
        named
            .into_iter()
            .filter_map(|(bytes, name)| {
                Some(Limit {
                    bytes: bytes?,
                    name,
                })
            })
            .min_by_key(|limit| limit.bytes)
    }
}

fn available(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text
        .lines()
        .find_map(|it| it.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// What distributions and container engines set for everybody (64 KiB, 8 MiB, 64 MiB) is meant for
/// a few keys. CUDA's driver pins without regard to the limit, so counting such a default would turn
/// the engine off where nothing stands in its way.
const DEFAULT_LOCK_LIMIT: u64 = 64 << 20;

/// The bit of `CAP_IPC_LOCK`, with which the kernel lets a process lock what it wants.
const IPC_LOCK: u64 = 1 << 14;

fn locked(root: &Path) -> Option<u64> {
    let status = fs::read_to_string(root.join("proc/self/status")).unwrap_or_default();
    let capabilities = status.lines().find_map(|it| it.strip_prefix("CapEff:"));
    let capabilities = capabilities.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    if capabilities.is_some_and(|it| it & IPC_LOCK != 0) {
        return None;
    }
    let text = fs::read_to_string(root.join("proc/self/limits")).ok()?;
    let line = text
        .lines()
        .find_map(|it| it.strip_prefix("Max locked memory"))?;
    // Soft, hard, unit; "unlimited" is no number.
    let limit = line.split_whitespace().next()?.parse().ok()?;
    (limit > DEFAULT_LOCK_LIMIT).then_some(limit)
}

/// The names of one version's files.
struct Version {
    mount: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// The line of `memory.stat` with the cache that the kernel drops first.
    reclaimable: &'static str,
}

const V1: Version = Version {
    mount: "sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file",
};
const V2: Version = Version {
    mount: "sys/fs/cgroup",
    limit: "memory.max",
    usage: "memory.current",
    reclaimable: "inactive_file",
};

fn cgroup(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mut least = None;
    for line in text.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let version = match controllers {
            "" => &V2,
            list if list.split(',').any(|it| it == "memory") => &V1,
            _ => continue,
        };
        least = least.into_iter().chain(left(root, version, path)).min();
    }
    least
}

/// The least that the group at `path`, or one above it, leaves. Inside a container the path is
/// often that of the host, and only the mount itself is there.
fn left(root: &Path, version: &Version, path: &str) -> Option<u64> {
    let mount = root.join(version.mount);
    let mut folder = mount.clone();
    let mut least = left_at(&folder, version);
    for part in Path::new(path).components() {
        if let Component::Normal(name) = part {
            folder.push(name);
            least = least.into_iter().chain(left_at(&folder, version)).min();
        }
    }
    least
}

fn left_at(folder: &Path, version: &Version) -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        text.trim().parse().ok()
    };
    let limit = number(version.limit).filter(|limit| *limit < UNLIMITED)?;
    let used = number(version.usage)?.saturating_sub(reclaimable(folder, version));
    Some(limit.saturating_sub(used))
}

fn reclaimable(folder: &Path, version: &Version) -> u64 {
    let text = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(name, _)| *name == version.reclaimable)
        .and_then(|(_, bytes)| bytes.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn reads_a_machine_with_no_groups() {
        let root = machine(&[
            ("proc/meminfo", "MemTotal:  100 kB\nMemAvailable:   64 kB\n"),
            (
                "proc/self/limits",
                "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  67108865  67108866  bytes\n",
            ),
            ("proc/self/cgroup", "0::/\n"),
        ]);
        let limits = Limits::read(root.path());
        assert_eq!(
            (limits.available, limits.cgroup, limits.locked),
            (Some(65536), None, Some(67_108_865))
        );
        assert_eq!(limits.least().unwrap().name, "MemAvailable");
    }

    #[test]
    fn the_lock_limit_does_not_bind_who_may_pass_it() {
        let limits = (
            "proc/self/limits",
            "Max locked memory  99999999  99999999  bytes\n",
        );
        for (capabilities, expected) in [
            ("0000000000004000", None),
            ("0000000000000000", Some(99_999_999)),
        ] {
            let status = format!("Name:\tpython\nCapEff:\t{capabilities}\n");
            let root = machine(&[limits, ("proc/self/status", &status)]);
            assert_eq!(Limits::read(root.path()).locked, expected);
        }
    }

    #[test]
    fn a_lock_limit_that_everybody_has_is_no_choice() {
        for limit in ["65536", "8388608", "67108864"] {
            let text = format!("Max locked memory  {limit}  {limit}  bytes\n");
            let root = machine(&[("proc/self/limits", &text)]);
            assert_eq!(Limits::read(root.path()).locked, None);
        }
    }

    #[test]
    fn version_2_counts_every_group_above_and_not_the_cache() {
        let root = machine(&[
            ("proc/self/cgroup", "0::/pod/main\n"),
            ("sys/fs/cgroup/pod/memory.max", "10000\n"),
            ("sys/fs/cgroup/pod/memory.current", "9000\n"),
            (
                "sys/fs/cgroup/pod/memory.stat",
                "anon 1000\ninactive_file 6000\n",
            ),
            ("sys/fs/cgroup/pod/main/memory.max", "max\n"),
            ("sys/fs/cgroup/pod/main/memory.current", "9000\n"),
        ]);
        assert_eq!(Limits::read(root.path()).cgroup, Some(7000));
    }

    #[test]
    fn version_1_in_a_container_is_at_the_mount() {
        let root = machine(&[
            (
                "proc/self/cgroup",
                "5:cpu:/docker/x\n4:hugetlb,memory:/docker/x\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "6000\n"),
            (
                "sys/fs/cgroup/memory/memory.stat",
                "total_inactive_file 500\n",
            ),
        ]);
        assert_eq!(Limits::read(root.path()).cgroup, Some(0), "over its limit");
    }

    #[test]
    fn no_limit_is_no_limit() {
        let root = machine(&[
            ("proc/self/cgroup", "4:memory:/\n"),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "6000\n"),
            (
                "proc/self/limits",
                "Max locked memory  unlimited  unlimited  bytes\n",
            ),
        ]);
        assert_eq!(Limits::read(root.path()), Limits::default());
        assert_eq!(Limits::default().least(), None);
    }
}
