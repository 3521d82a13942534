//! Processes that were made up, and this one.

use std::fs;
use std::os::unix::fs::symlink;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::claims::HELD;

/// What the files of a process say; `None`: it has no such file, or ended meanwhile.
#[derive(Clone, Debug)]
struct Made {
    status: Option<[u64; 3]>,
    name: Vec<u8>,
    command: Option<Vec<u8>>,
    gpu: bool,
    claim: u64,
}

fn made() -> impl Strategy<Value = Made> {
    let kib = || prop_oneof![Just(0), 1..1_u64 << 30, Just(u64::MAX)];
    // The kernel writes a name's line breaks as two characters.
    let name = vec(any::<u8>().prop_filter("escaped", |it| *it != b'\n'), 1..15);
    let command = option::of(vec(any::<u8>(), 0..300));
    let status = option::of([kib(), kib(), kib()]);
    let made = (status, name, command, any::<bool>(), 0..1_u64 << 20);
    made.prop_map(|(status, name, command, gpu, claim)| Made { status, name, command, gpu, claim })
}

impl Made {
    fn write(&self, folder: &std::path::Path) {
        fs::create_dir_all(folder.join("fd")).unwrap();
        if let Some([locked, pinned, shared]) = self.status {
            let mut text = [b"Name:\t", &*self.name].concat();
            text.extend(
                format!("\nUid:\t7\t7\t7\t7\nVmLck:\t{locked:8} kB\nVmPin:\t{pinned:8} kB\nRssShmem:\t{shared:8} kB\n")
                    .into_bytes(),
            );
            fs::write(folder.join("status"), text).unwrap();
        }
        if let Some(command) = &self.command {
            fs::write(folder.join("cmdline"), command).unwrap();
        }
        let target = if self.gpu { "/dev/nvidia0" } else { "/dev/null" };
        symlink(target, folder.join("fd/3")).unwrap();
    }

    /// Bytes; a number that is none counts as nothing.
    fn bytes(&self) -> u64 {
        let bytes = |kib: u64| kib.checked_mul(1024).unwrap_or(0);
        self.status.map_or(0, |[locked, pinned, shared]| {
            let shared = if self.gpu { bytes(shared) } else { 0 };
            let most = bytes(locked).max(bytes(pinned)).max(shared);
            most.max(self.claim << 20)
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_processes_say_it_is_added_up_and_plain(
        all in btree_map(1_u32..1000, made(), 0..8),
        but in 1_u32..1000,
    ) {
        let root = tempfile::tempdir().unwrap();
        for (pid, made) in &all {
            made.write(&root.path().join(format!("proc/{pid}")));
        }
        let lock = |(pid, made): (&u32, &Made)| {
            let last = HELD + made.claim as i64 - 1;
            format!("1: POSIX  ADVISORY  READ {pid} 00:01:{pid} {HELD} {last}\n")
        };
        fs::create_dir_all(root.path().join("proc")).unwrap();
        fs::write(root.path().join("proc/locks"), all.iter().map(lock).collect::<String>()).unwrap();
        let but = all.range(but..).next().map_or(but, |(pid, _)| *pid);
        let held = Held::read(&Files::below(root.path()), &[but]);
        let mut expected: Vec<_> = all
            .iter()
            .map(|(pid, made)| (made.bytes(), *pid))
            .filter(|(bytes, pid)| *bytes > 0 && *pid != but)
            .collect();
        let mut found: Vec<_> = held.processes.iter().map(|it| (it.bytes(), it.pid)).collect();
        prop_assert!(found.is_sorted_by(|a, b| a.0 >= b.0));
        found.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
        for it in &held.processes {
            prop_assert_eq!(it.user, Some(7));
            let is_plain = |it: char| (' '..='~').contains(&it);
            prop_assert!(it.command.chars().all(is_plain), "{:?}", it.command);
            prop_assert!(it.command.chars().count() <= LONGEST);
        }
    }
}

#[test]
fn what_a_terminal_would_obey_is_a_question_mark() {
    assert_eq!(plain("a\u{1b}[2Jb\r\u{202e}é \u{9b}c"), "a?[2Jb??? ?c");
}

#[test]
fn a_process_that_cannot_be_read_is_counted_and_one_that_has_ended_is_not() {
    let root = tempfile::tempdir().unwrap();
    let files = Files::below(root.path());
    assert_eq!(Held::read(&files, &[]), Held::default());
    fs::create_dir(root.path().join("proc")).unwrap();
    let text = "Mlocked: 8 kB\nUnevictable: 9 kB\n";
    fs::write(root.path().join("proc/meminfo"), text).unwrap();
    let mut held = Held::read(&files, &[]);
    for kind in [ErrorKind::PermissionDenied, ErrorKind::NotFound] {
        held.add(Err(kind.into()));
    }
    let expected = Held { unreadable: 1, mlocked_bytes: Some(8192), unevictable_bytes: Some(9216), ..Held::default() };
    assert_eq!(held, expected);
}
