//! Limits read from folders that are made up, and from this machine.

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
    assert_eq!(
        Limits::whole(root.path()),
        Some((102_400, "this machine has"))
    );
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
    let limits = Limits::read(root.path());
    assert_eq!(limits.cgroup, Some(7000));
    assert_eq!(
        Limits::whole(root.path()),
        Some((10000, "the control group allows"))
    );
    let group = limits.group.unwrap();
    for (path, inside) in [
        ("/pod/main", true),
        ("/pod/side/below", true),
        ("/pod", true),
        ("/podium", false),
        ("/", false),
        ("/../other", false),
    ] {
        assert_eq!(group.is_above(("", path)), inside, "{path}");
        fs::create_dir_all(root.path().join("proc/7")).unwrap();
        fs::write(root.path().join("proc/7/cgroup"), format!("0::{path}\n")).unwrap();
        assert_eq!(group.has(root.path(), 7), inside, "{path}");
    }
    assert!(!group.has(root.path(), 8) && !group.is_above(("memory", "/pod")));
}

#[test]
fn shared_memory_is_in_use_and_no_cache() {
    // Blocks of 6000 bytes that forked children share: a group counts them as shmem, and once.
    let stat = "anon 1000\nfile 7000\nshmem 6000\ninactive_anon 6500\ninactive_file 500\n";
    let root = machine(&[
        ("proc/self/cgroup", "0::/pod\n"),
        ("sys/fs/cgroup/pod/memory.max", "10000\n"),
        ("sys/fs/cgroup/pod/memory.current", "8500\n"),
        ("sys/fs/cgroup/pod/memory.stat", stat),
    ]);
    assert_eq!(Limits::read(root.path()).cgroup, Some(2000));
    let stat =
        "cache 7000\nshmem 6000\ntotal_cache 7000\ntotal_shmem 6000\ntotal_inactive_file 500\n";
    let root = machine(&[
        ("proc/self/cgroup", "4:memory:/\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "10000\n"),
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "8500\n"),
        ("sys/fs/cgroup/memory/memory.stat", stat),
    ]);
    assert_eq!(Limits::read(root.path()).cgroup, Some(2000));
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
    let limits = Limits::read(root.path());
    assert_eq!(limits.cgroup, Some(0), "over its limit");
    let group = limits.group.unwrap();
    let is_inside = |path| group.is_above(("hugetlb,memory", path));
    assert!(is_inside("/docker/x") && is_inside("/") && !is_inside("/../y"));
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
