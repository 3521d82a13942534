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
    /// What counts in it.
    pub of: Of,
}

/// What counts in a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// All that lives on the machine.
    Machine,
    /// What lives in a control group.
    Group,
    /// This process alone; and what it has is not taken off.
    Process,
}

/// What is left, in bytes; `None` where there is no such limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// `MemAvailable`: what the machine can give without swapping.
    pub available: Option<u64>,
    /// `MemTotal`: what the machine has.
    pub total: Option<u64>,
    /// What the control group (and each one above it) still allows.
    pub cgroup: Option<u64>,
    /// The one of them that allows least.
    pub group: Option<Group>,
    /// `RLIMIT_MEMLOCK`, the soft limit, where somebody chose it for such a program: not where the
    /// process may pass it (`CAP_IPC_LOCK`), and not up to 64 MiB.
    pub locked: Option<u64>,
}

/// A control group, as a line of `/proc/PID/cgroup` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    controllers: String,
    path: String,
}

impl Group {
    /// Whether a process is in it or below it.
    pub(super) fn has(&self, root: &Path, process: u32) -> bool {
        let text = fs::read_to_string(root.join(format!("proc/{process}/cgroup")));
        text.is_ok_and(|text| lines(&text).any(|line| self.is_above(line)))
    }

    fn is_above(&self, (controllers, path): (&str, &str)) -> bool {
        let below = match path.strip_prefix(&*self.path) {
            // The mount itself: of what is not below it the kernel says so.
            Some(rest) if self.path == "/" => !rest.starts_with(".."),
            Some(rest) => rest.is_empty() || rest.starts_with('/'),
            None => false,
        };
        below && controllers == self.controllers
    }
}

/// Controllers and path of each line.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        Some((fields.next()?, fields.next()?))
    })
}

/// Above this, control groups v1 mean that there is no limit.
const UNLIMITED: u64 = 1 << 60;

impl Limits {
    /// What the files below `root` say.
    pub fn read(root: &Path) -> Self {
        let meminfo = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
        let (cgroup, group) = cgroup(root, left_at).unzip();
        Self {
            available: field(&meminfo, "MemAvailable:"),
            total: field(&meminfo, "MemTotal:"),
            cgroup,
            group,
            locked: locked(root),
        }
    }

    /// Those that there are.
    pub fn all(&self) -> impl Iterator<Item = Limit> {
        let group = "memory that the control group leaves";
        let named = [
            (self.available, "MemAvailable", Of::Machine),
            (self.cgroup, group, Of::Group),
            (self.locked, "RLIMIT_MEMLOCK", Of::Process),
        ];
        named.into_iter().filter_map(|(bytes, name, of)| {
            let bytes = bytes?;
            Some(Limit { bytes, name, of })
        })
    }

    /// All that a process on the machine below `root` could ever have, and who has it: of its memory and of what
    /// its control groups allow, the less.
    pub fn whole(root: &Path) -> Option<(u64, &'static str)> {
        let meminfo = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
        let machine = field(&meminfo, "MemTotal:").map(|it| (it, "this machine has"));
        let group = cgroup(root, limit_at).map(|(bytes, _)| (bytes, "the control group allows"));
        machine.into_iter().chain(group).min()
    }

    /// The least of them.
    pub fn least(&self) -> Option<Limit> {
        self.all().min_by_key(|limit| limit.bytes)
    }
}

/// What a line of `/proc/meminfo` says.
fn field(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|it| it.strip_prefix(name))?;
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

/// A number of the group in a folder, if it has one.
type At = fn(&Path, &Version) -> Option<u64>;

/// The least number that a group of this process has, and which group.
fn cgroup(root: &Path, at: At) -> Option<(u64, Group)> {
    let text = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mut least = None;
    for (controllers, path) in lines(&text) {
        let version = match controllers {
            "" => &V2,
            list if list.split(',').any(|it| it == "memory") => &V1,
            _ => continue,
        };
        let Some((bytes, path)) = least_of(root, version, path, at) else {
            continue;
        };
        if least.as_ref().is_none_or(|(least, _)| bytes < *least) {
            let controllers = controllers.to_owned();
            least = Some((bytes, Group { controllers, path }));
        }
    }
    least
}

/// The least number that the group at `path`, or one above it, has, and that one's path. Inside a container the path is
/// often that of the host, and only the mount itself is there.
fn least_of(root: &Path, version: &Version, path: &str, of: At) -> Option<(u64, String)> {
    let mount = root.join(version.mount);
    let mut folder = mount.clone();
    let mut least = of(&folder, version).map(|bytes| (bytes, "/".to_owned()));
    let mut at = String::new();
    for part in Path::new(path).components() {
        if let Component::Normal(name) = part {
            folder.push(name);
            at = format!("{at}/{}", name.to_string_lossy());
            let here = of(&folder, version).map(|bytes| (bytes, at.clone()));
            least = least.into_iter().chain(here).min_by_key(|it| it.0);
        }
    }
    least
}

/// What the group still allows.
fn left_at(folder: &Path, version: &Version) -> Option<u64> {
    let limit = limit_at(folder, version)?;
    let used = number(folder, version.usage)?.saturating_sub(reclaimable(folder, version));
    Some(limit.saturating_sub(used))
}

/// What the group allows in all.
fn limit_at(folder: &Path, version: &Version) -> Option<u64> {
    number(folder, version.limit).filter(|limit| *limit < UNLIMITED)
}

fn number(folder: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(folder.join(name)).ok()?;
    text.trim().parse().ok()
}

fn reclaimable(folder: &Path, version: &Version) -> u64 {
    let text = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(name, _)| *name == version.reclaimable)
        .and_then(|(_, bytes)| bytes.trim().parse().ok())
        .unwrap_or(0)
}

// By its path, since the doctor of the build tool has this file, too.
#[cfg(test)]
#[path = "limits/tests.rs"]
mod tests;
