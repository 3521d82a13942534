//! Budgets on made-up machines, and on this one.

use pinbuddy_machine::{Cgroup, LockLimit};

use super::claims::Claims;
use super::*;

const GIB: u64 = 1 << 30;
const EIGHT: Option<(usize, &str)> = Some((8, "LOCAL_WORLD_SIZE"));

fn limits(available: u64, cgroup: Option<u64>, locked: Option<u64>) -> Limits {
    Limits {
        available: Some(available),
        cgroup: cgroup.map(|limit| Cgroup { limit, ..Cgroup::default() }),
        lock: LockLimit { soft: locked, ..LockLimit::default() },
        ..Limits::default()
    }
}

#[test]
fn the_least_limit_decides_and_is_named() {
    for (limits, gib, name) in [
        (limits(24 * GIB, None, None), 12, "MemAvailable"),
        (limits(24 * GIB, Some(6 * GIB), None), 3, "the control group leaves"),
        (limits(24 * GIB, Some(6 * GIB), Some(2 * GIB)), 1, "RLIMIT_MEMLOCK"),
    ] {
        let budget = Budget::decide(&limits, None, (0, 0), &[]);
        assert_eq!(budget.bytes as u64, gib * GIB);
        assert!(budget.why.contains(name), "{}", budget.why);
    }
}

#[test]
fn where_gpus_share_the_memory_the_budget_is_a_quarter_and_says_so() {
    let budget = |limits: Limits, own| {
        let shared_with_gpus = true;
        let limits = Limits { shared_with_gpus, ..limits };
        Budget::decide(&limits, EIGHT, own, &[])
    };
    let alone = budget(limits(19 * GIB, None, None), (5 * GIB, 5 * GIB));
    assert_eq!(alone.bytes as u64, 5 * GIB);
    assert_eq!(
        budget(limits(19 * GIB, None, None), (5 * GIB, 0)).why,
        "a quarter of the 24 GiB of MemAvailable and of what is pinned, shared by 8 processes (LOCAL_WORLD_SIZE), as the GPU \
         uses that memory, too"
    );
    let group = budget(limits(99 * GIB, Some(16 * GIB), None), (0, 0));
    assert_eq!(group.bytes as u64, GIB / 2);
    // Half of the lock limit is less than a quarter of the machine, and is no GPU's.
    let locked = budget(limits(99 * GIB, None, Some(8 * GIB)), (0, 0));
    assert_eq!(locked.bytes as u64, GIB / 2);
    assert_eq!(locked.why, "half of the 8 GiB of RLIMIT_MEMLOCK, shared by 8 processes (LOCAL_WORLD_SIZE)");
}

#[test]
fn with_no_limit_known_nothing_is_held_back() {
    assert_eq!(Budget::decide(&Limits::default(), EIGHT, (0, 0), &[]).bytes, usize::MAX);
}

#[test]
fn what_is_pinned_already_is_a_part_of_what_is_shared() {
    // Of 24 GiB that were free this process has pinned 5.
    let of = |launched| Budget::decide(&limits(19 * GIB, None, None), launched, (5 * GIB, 6 * GIB), &[]);
    assert_eq!(of(None).bytes as u64, 12 * GIB);
    assert_eq!(of(None).why, "half of the 24 GiB of MemAvailable and of what is pinned");
    // It holds more than its share as one of eight, and keeps it.
    let many = of(EIGHT);
    assert_eq!(many.bytes as u64, 6 * GIB);
    assert_eq!(
        many.why,
        "as it has pinned already: more than half of the 24 GiB of MemAvailable and of what is \
         pinned, shared by 8 processes (LOCAL_WORLD_SIZE)"
    );
    // The lock limit is for each process; the kernel does not subtract what is pinned.
    let locked = Budget::decide(&limits(99 * GIB, None, Some(8 * GIB)), None, (GIB, GIB), &[]);
    assert_eq!(locked.bytes as u64, 4 * GIB);
    assert_eq!(locked.why, "half of the 8 GiB of RLIMIT_MEMLOCK");
}

/// A machine of these files; dropping the folder deletes them.
pub(crate) fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    root
}

/// Four processes without a launcher, on a machine of 24 GiB of which 22 are free: its files.
fn four(grew: u64) -> (tempfile::TempDir, [u64; 3]) {
    let held = [1, 2, 512];
    let mut locks = String::new();
    for (n, mib) in held.into_iter().enumerate() {
        for (start, length) in [(claims::HELD, mib), (claims::TIME, grew)] {
            let line = format!("{n}: POSIX  ADVISORY  READ {n} 00:01:{n} {start} {}\n", start + length as i64 - 1);
            locks += &line;
        }
    }
    let root = machine(&[
        ("proc/meminfo", "MemTotal: 25165824 kB\nMemAvailable: 23068672 kB\n"),
        ("proc/locks", &locks),
        ("proc/self/cgroup", "0::/job\n"),
        ("proc/2/cgroup", "0::/job/below\n"),
        ("sys/fs/cgroup/job/memory.max", "1073741824\n"),
        ("sys/fs/cgroup/job/memory.current", "0\n"),
    ]);
    (root, held.map(|it| it << 20))
}

/// The budget beside what the machine's list says.
fn on(root: &Path, claims: &Claims, taken: u64) -> Budget {
    let own = (claims.pinned(), taken);
    Budget::on(root, None, own, || false, || Some(claims.of_others(root)))
}

#[test]
fn processes_that_nobody_launched_share_by_what_they_say() {
    let (root, held) = four(claims::now());
    let group = root.path().join("sys/fs/cgroup/job/memory.max");
    let all = 22 * GIB + held.iter().sum::<u64>();
    let mine = || on(root.path(), &Claims::default(), 0);
    // In the group, which leaves less than the machine, there is one of them.
    let budget = mine();
    assert_eq!(budget.bytes as u64, (GIB + held[2]) / 2 - held[2]);
    assert_eq!(
        budget.why,
        "half of the 1.5 GiB of memory that the control group leaves and of what is pinned, less \
         512 MiB that another process holds"
    );
    std::fs::write(group, "max\n").unwrap();
    let budget = mine();
    assert_eq!(budget.bytes as u64, all / 2 / 4);
    assert_eq!(
        budget.why,
        "half of the 22.5 GiB of MemAvailable and of what is pinned, shared by 4 processes that pin \
         now"
    );
}

#[test]
fn who_pinned_long_ago_has_what_it_holds() {
    for grew in [claims::now() - 3600, claims::now() + 3600, 1] {
        let (root, held) = four(grew);
        std::fs::remove_file(root.path().join("proc/self/cgroup")).unwrap();
        let theirs: u64 = held.iter().sum();
        let claims = Claims::default();
        claims.add(3 << 20);
        let budget = on(root.path(), &claims, 3 << 20);
        assert_eq!(budget.bytes as u64, (22 * GIB + theirs + (3 << 20)) / 2 - theirs);
        assert_eq!(
            budget.why,
            "half of the 22.5 GiB of MemAvailable and of what is pinned, less 515 MiB that 3 other \
             processes hold"
        );
    }
}
