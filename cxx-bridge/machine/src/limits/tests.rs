//! Limits read from made-up machines: tests/machines.txt says what each has, and what is read.

use super::*;

/// The limits that exist, for people.
fn told(files: &Files) -> String {
    let limits = Limits::read(files);
    let group = limits.cgroup.as_ref().map(|it| {
        let file = it.file.strip_prefix("/sys/fs/cgroup/").unwrap();
        format!("left {} in {file}, used {}", it.left(), it.used)
    });
    let whole = Limits::whole(files).map(|(bytes, whose)| format!("whole {bytes} {whose}"));
    let all = [
        limits.available.map(|it| format!("available {it}")),
        group,
        limits.lock.binding().map(|it| format!("lock {it}")),
        limits.least().map(|it| format!("least {}", it.name)),
        whole,
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    match all.is_empty() {
        true => "nothing".to_owned(),
        false => all.join(", "),
    }
}

#[test]
fn the_limits_of_each_machine_are_read() {
    for machine in include_str!("tests/machines.txt").split("\n\n") {
        let (name, rest) = machine.split_once('\n').unwrap();
        let (files, expected) = rest.split_once("=> ").unwrap();
        let root = tempfile::tempdir().unwrap();
        crate::made_up(root.path(), files);
        let found = told(&Files::below(root.path()));
        assert_eq!(found, expected.trim_end(), "{name}\n{files}");
    }
}

#[test]
fn a_process_may_allocate_what_its_tightest_limit_leaves() {
    let none = "proc/self/status =VmSize:\t  900 kB\nproc/self/status =VmData:\t  300 kB\n\
                proc/self/limits =Max address space  unlimited  unlimited  bytes\n";
    let data = "proc/self/limits =Max data size  409600  unlimited  bytes\n";
    let space = "proc/self/limits =Max address space  972800  972800  bytes\n";
    let group = "proc/self/cgroup =0::/\nsys/fs/cgroup/memory.max =4096\nsys/fs/cgroup/memory.current =1096\n";
    for (machine, left) in [
        (none.to_owned(), None),
        (none.to_owned() + data, Some((100 << 10, "RLIMIT_DATA (ulimit -d)"))),
        (space.to_owned() + none, Some((50 << 10, "RLIMIT_AS (ulimit -v)"))),
        (space.to_owned() + none + data + group, Some((3000, "the control group"))),
    ] {
        let root = tempfile::tempdir().unwrap();
        crate::made_up(root.path(), &machine);
        assert_eq!(room(&Files::below(root.path())), left, "{machine}");
    }
}
