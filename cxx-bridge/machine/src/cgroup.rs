//! Memory control groups, v1 and v2: limits, use, and which processes they hold.

use serde::Serialize;

use crate::files::{Files, field};

/// A control group, as a line of `/proc/PID/cgroup` names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    controllers: String,
    path: String,
}

impl Group {
    /// Whether a process is in it or below it.
    pub fn has(&self, files: &Files, process: u32) -> bool {
        let text = files.text(&format!("proc/{process}/cgroup"));
        text.is_some_and(|text| lines(&text).any(|line| self.is_above(line)))
    }

    fn is_above(&self, (controllers, path): (&str, &str)) -> bool {
        let below = match path.strip_prefix(&*self.path) {
            // The mount itself: the kernel shows a group outside of it with "..".
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

/// A group with a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cgroup {
    /// 1 or 2.
    pub version: u32,
    /// The file that holds the limit, from the root.
    pub file: String,
    /// The limit in bytes.
    pub limit: u64,
    /// Bytes in use.
    pub used: u64,
    /// Of these, pages of files, which the kernel takes back before it refuses memory or has a process wait for it.
    pub cache: u64,
    /// The group.
    #[serde(skip)]
    pub group: Group,
}

/// Above this, v1 means that there is no limit.
const UNLIMITED: u64 = 1 << 60;

/// The names of one version's files.
struct Version {
    number: u32,
    mount: &'static str,
    /// Files with a limit, each with the file of what counts in it: the limit beyond which memory is refused; in v1, that of
    /// memory and swap together, where pages in swap leave less for pinned ones; in v2, the limit beyond which the kernel
    /// slows processes down until they have given memory back, which pinned memory never is. Swap alone (v2's
    /// `memory.swap.max`) holds no pinned page, and no page that is in use counts as one that could go there.
    limits: [(&'static str, &'static str); 2],
    /// The lines of `memory.stat` with pages of files that the kernel takes back: read once, and more often.
    reclaimable: [&'static str; 2],
}

const V1: Version = Version {
    number: 1,
    mount: "sys/fs/cgroup/memory",
    limits: [
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ("memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes"),
    ],
    reclaimable: ["total_inactive_file ", "total_active_file "],
};
const V2: Version = Version {
    number: 2,
    mount: "sys/fs/cgroup",
    limits: [("memory.max", "memory.current"), ("memory.high", "memory.current")],
    reclaimable: ["inactive_file ", "active_file "],
};

/// Where one group's files are.
struct Place {
    version: &'static Version,
    folder: String,
    group: Group,
}

impl Cgroup {
    /// The group that leaves least, of this process's group and all above it.
    pub fn tightest(files: &Files) -> Option<Self> {
        let places = places(files).into_iter();
        places.filter_map(|it| it.read(files)).min_by_key(Self::left)
    }

    /// The least that one of them allows in all, in bytes.
    pub fn least_limit(files: &Files) -> Option<u64> {
        let places = places(files);
        let limits = places.iter().flat_map(|it| it.limits(files));
        limits.map(|it| it.bytes).min()
    }

    /// Bytes that may still be taken; cache counts as free.
    pub fn left(&self) -> u64 {
        let used = self.used.saturating_sub(self.cache);
        self.limit.saturating_sub(used)
    }
}

/// A limit of one group.
struct GroupLimit {
    bytes: u64,
    file: String,
    usage: &'static str,
}

impl Place {
    /// The limits that are set.
    fn limits(&self, files: &Files) -> impl Iterator<Item = GroupLimit> {
        let limits = self.version.limits.into_iter();
        limits.filter_map(|(name, usage)| {
            let file = format!("{}/{name}", self.folder);
            let bytes = files.number(&file)?;
            (bytes < UNLIMITED).then_some(GroupLimit { bytes, file, usage })
        })
    }

    /// The limit that leaves least.
    fn read(self, files: &Files) -> Option<Cgroup> {
        let (folder, version) = (&self.folder, self.version);
        let mut limits = self.limits(files).peekable();
        limits.peek()?;
        let stat = files.text(&format!("{folder}/memory.stat"));
        let pages = |line| -> Option<u64> { field(stat.as_deref()?, line)?.parse().ok() };
        let cache = version.reclaimable.into_iter().filter_map(pages);
        let cache = cache.fold(0, u64::saturating_add);
        let group = |limit: GroupLimit| {
            Some(Cgroup {
                version: version.number,
                limit: limit.bytes,
                used: files.number(&format!("{folder}/{}", limit.usage))?,
                cache,
                file: format!("/{}", limit.file),
                group: self.group.clone(),
            })
        };
        limits.filter_map(group).min_by_key(Cgroup::left)
    }
}

/// For each hierarchy with memory: the mount, and each folder down to this process's group. Inside a
/// container the path is often the host's, and only the mount itself exists.
fn places(files: &Files) -> Vec<Place> {
    let text = files.text("proc/self/cgroup").unwrap_or_default();
    let mut places = Vec::new();
    for (controllers, path) in lines(&text) {
        let version = match controllers {
            "" => &V2,
            list if list.split(',').any(|it| it == "memory") => &V1,
            _ => continue,
        };
        let mut at = String::new();
        let mut place = |path: &str| {
            places.push(Place {
                version,
                folder: format!("{}{path}", version.mount),
                group: Group {
                    controllers: controllers.to_owned(),
                    path: if path.is_empty() { "/" } else { path }.to_owned(),
                },
            });
        };
        place("");
        for part in path.split('/').filter(|it| !matches!(*it, "" | "." | "..")) {
            at = format!("{at}/{part}");
            place(&at);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(controllers: &str, path: &str) -> Group {
        Group { controllers: controllers.to_owned(), path: path.to_owned() }
    }

    #[test]
    fn a_group_holds_what_is_below_it() {
        let pod = group("", "/pod");
        for (path, inside) in [
            ("/pod/main", true),
            ("/pod/side/below", true),
            ("/pod", true),
            ("/podium", false),
            ("/", false),
            ("/../other", false),
        ] {
            assert_eq!(pod.is_above(("", path)), inside, "{path}");
            let root = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(root.path().join("proc/7")).unwrap();
            std::fs::write(root.path().join("proc/7/cgroup"), format!("0::{path}\n")).unwrap();
            let files = Files::below(root.path());
            assert_eq!(pod.has(&files, 7), inside, "{path}");
            assert!(!pod.has(&files, 8));
        }
        assert!(!pod.is_above(("memory", "/pod")));
        let mount = group("hugetlb,memory", "/");
        let is_inside = |path| mount.is_above(("hugetlb,memory", path));
        assert!(is_inside("/docker/x") && is_inside("/") && !is_inside("/../y"));
    }
}
