//! Limits read from made-up folders, and from this machine.

use std::fs;

use super::*;

fn read(root: &tempfile::TempDir) -> Limits {
    Limits::read(&Files::below(root.path()))
}

/// Bytes that the control group leaves.
fn left(limits: &Limits) -> Option<u64> {
    limits.cgroup.as_ref().map(Cgroup::left)
}

fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write(&root, "", files);
    root
}

fn write(root: &tempfile::TempDir, prefix: &str, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.path().join(format!("{prefix}{name}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// A machine with a group of version 2 that has these files.
fn pod(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = machine(&[("proc/self/cgroup", "0::/pod\n")]);
    write(&root, "sys/fs/cgroup/pod/memory.", files);
    root
}

/// A machine with a mount of version 1 that has these files.
fn mount(files: &[(&str, &str)]) -> tempfile::TempDir {
    let groups = "5:cpu:/docker/x\n4:hugetlb,memory:/docker/x\n";
    let root = machine(&[("proc/self/cgroup", groups)]);
    write(&root, "sys/fs/cgroup/memory/memory.", files);
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
    let limits = read(&root);
    assert_eq!(
        (limits.available, left(&limits), limits.lock.binding()),
        (Some(65536), None, Some(67_108_865))
    );
    assert_eq!(limits.least().unwrap().name, "MemAvailable");
    assert_eq!(
        Limits::whole(&Files::below(root.path())),
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
        assert_eq!(read(&root).lock.binding(), expected);
    }
}

#[test]
fn a_lock_limit_that_everybody_has_is_no_choice() {
    for limit in ["65536", "8388608", "67108864"] {
        let text = format!("Max locked memory  {limit}  {limit}  bytes\n");
        let root = machine(&[("proc/self/limits", &text)]);
        assert_eq!(read(&root).lock.binding(), None);
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
    let limits = read(&root);
    assert_eq!(left(&limits), Some(7000));
    assert_eq!(
        Limits::whole(&Files::below(root.path())),
        Some((10000, "the control group allows"))
    );
}

#[test]
fn what_the_kernel_takes_back_is_not_in_use() {
    let stat =
        "anon 1000\nfile 7500\nshmem 500\nactive_anon 900\ninactive_file 3000\nactive_file 4000\n";
    let root = pod(&[("max", "10000\n"), ("current", "9000\n"), ("stat", stat)]);
    assert_eq!(left(&read(&root)), Some(8000));
    let stat = "active_file 1\ntotal_inactive_file 3000\ntotal_active_file 4000\n";
    let root = mount(&[
        ("limit_in_bytes", "10000\n"),
        ("usage_in_bytes", "9000\n"),
        ("stat", stat),
    ]);
    assert_eq!(left(&read(&root)), Some(8000));
}

#[test]
fn where_the_kernel_slows_processes_down_is_a_limit_in_every_group_above() {
    for (above, high, max, expected) in [
        (
            "max",
            "6000",
            "10000",
            (1000, "/sys/fs/cgroup/pod/main/memory.high"),
        ),
        (
            "5500",
            "6000",
            "10000",
            (500, "/sys/fs/cgroup/pod/memory.high"),
        ),
        (
            "5500",
            "max",
            "5200",
            (200, "/sys/fs/cgroup/pod/main/memory.max"),
        ),
        (
            "5500",
            "max",
            "max",
            (500, "/sys/fs/cgroup/pod/memory.high"),
        ),
    ] {
        let root = machine(&[
            ("proc/self/cgroup", "0::/pod/main\n"),
            ("sys/fs/cgroup/pod/memory.max", "max\n"),
            ("sys/fs/cgroup/pod/memory.high", above),
            ("sys/fs/cgroup/pod/memory.current", "5000\n"),
            ("sys/fs/cgroup/pod/main/memory.max", max),
            ("sys/fs/cgroup/pod/main/memory.high", high),
            ("sys/fs/cgroup/pod/main/memory.current", "5000\n"),
        ]);
        let group = read(&root).cgroup.unwrap();
        assert_eq!((group.left(), &*group.file), expected);
    }
    let root = machine(&[
        ("proc/self/cgroup", "0::/\n"),
        ("sys/fs/cgroup/memory.high", "6000\n"),
    ]);
    let whole = Limits::whole(&Files::below(root.path()));
    assert_eq!(whole, Some((6000, "the control group allows")));
}

#[test]
fn version_1_counts_swap_where_memory_and_swap_have_one_limit() {
    // Of 12000 bytes of memory and swap, 11000 are taken: 9000 in memory, of which 1000 are cache, and 2000 in swap.
    for (both, expected) in [
        ("12000", (2000, "memory.limit_in_bytes", 9000)),
        ("11500", (1500, "memory.memsw.limit_in_bytes", 11000)),
        ("10000", (0, "memory.memsw.limit_in_bytes", 11000)),
        ("9223372036854771712", (2000, "memory.limit_in_bytes", 9000)),
    ] {
        let root = mount(&[
            ("limit_in_bytes", "10000\n"),
            ("usage_in_bytes", "9000\n"),
            ("memsw.limit_in_bytes", both),
            ("memsw.usage_in_bytes", "11000\n"),
            ("stat", "total_inactive_file 1000\n"),
        ]);
        let group = read(&root).cgroup.unwrap();
        let file = group.file.rsplit('/').next().unwrap();
        assert_eq!((group.left(), file, group.used), expected);
    }
}

#[test]
fn no_page_in_use_counts_as_one_that_swap_could_take() {
    // A group without swap, with some, with as much as it likes, and on kernels without the file.
    for most in [Some("0"), Some("6000"), Some("max"), None] {
        let mut group = vec![
            ("max", "10000\n"),
            ("current", "7000\n"),
            ("swap.current", "2000\n"),
            (
                "stat",
                "anon 6000\ninactive_anon 5000\ninactive_file 1000\n",
            ),
        ];
        group.extend(most.map(|it| ("swap.max", it)));
        let root = pod(&group);
        let meminfo = "MemAvailable: 64 kB\nSwapFree: 900 kB\n";
        write(&root, "proc/", &[("meminfo", meminfo)]);
        let limits = read(&root);
        assert_eq!(left(&limits), Some(4000), "{most:?}");
        assert_eq!(limits.available, Some(65536));
    }
}

#[test]
fn shared_memory_is_in_use_and_no_cache() {
    // Blocks of 6000 bytes that children share: a group counts them as shmem, and once.
    let stat = "anon 1000\nfile 7000\nshmem 6000\ninactive_anon 6500\ninactive_file 500\n";
    let root = pod(&[("max", "10000\n"), ("current", "8500\n"), ("stat", stat)]);
    assert_eq!(left(&read(&root)), Some(2000));
    let stat =
        "cache 7000\nshmem 6000\ntotal_cache 7000\ntotal_shmem 6000\ntotal_inactive_file 500\n";
    let root = mount(&[
        ("limit_in_bytes", "10000\n"),
        ("usage_in_bytes", "8500\n"),
        ("stat", stat),
    ]);
    assert_eq!(left(&read(&root)), Some(2000));
}

#[test]
fn version_1_in_a_container_is_at_the_mount() {
    let root = mount(&[("limit_in_bytes", "5000\n"), ("usage_in_bytes", "6000\n")]);
    assert_eq!(left(&read(&root)), Some(0), "over its limit");
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
    assert_eq!(read(&root), Limits::default());
    assert_eq!(Limits::default().least(), None);
}
