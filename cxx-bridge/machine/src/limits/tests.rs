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
