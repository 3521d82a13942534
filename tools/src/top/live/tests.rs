//! Pages of this process, as anybody may have made them.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use pinbuddy_live::{Counters, Process, VERSION};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::*;

/// An open file of that name, with this in it.
fn with(bytes: &[u8]) -> (OwnedFd, PathBuf) {
    let file = memfd_create(NAME, MemfdFlags::CLOEXEC).unwrap();
    rustix::io::write(&file, bytes).unwrap();
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    (file, path.into())
}

fn page() -> Page {
    Page {
        process: Process { pid: std::process::id(), ..Process::default() },
        counters: Counters { pinned: 5, ..Counters::default() },
        ..Page::default()
    }
}

/// The bytes of a page, with some words replaced.
fn bytes(words: &[(usize, u64)]) -> Vec<u8> {
    let mut all = page().words();
    for (at, word) in words {
        all[*at] = *word;
    }
    let mut bytes: Vec<u8> = all.into_iter().flat_map(u64::to_ne_bytes).collect();
    bytes.resize(LENGTH, 0);
    bytes
}

#[test]
fn a_page_is_found_by_its_name_and_read() {
    assert!(!has_page(std::process::id()));
    let (_file, path) = with(&bytes(&[]));
    assert_eq!(read(&path), Ok(page()));
    assert_eq!(row(std::process::id()).page(), Some(&page()));
}

#[test]
fn what_others_wrote_is_an_error_that_says_what_was_expected() {
    let said = |bytes: &[u8]| read(&with(bytes).1).unwrap_err();
    let (file, path) = with(&bytes(&[]));
    ftruncate(&file, 1 << 40).unwrap();
    let all = [
        said(&bytes(&[(1, VERSION + 1)])),
        said(&bytes(&[(10, u64::MAX)])),
        said(&bytes(&[(SEQUENCE, 1)])),
        said(&[0; LENGTH]),
        said(&bytes(&[])[..LENGTH - 1]),
        said(&[]),
        read(&path).unwrap_err(),
    ];
    insta::assert_snapshot!(all.join("\n"), @r#"
    expected version 1 of the live page, found version 2: the process has another release of pinbuddy; use the `pinbuddy` that belongs to it
    expected a number of bytes that a machine can have, found 18446744073709551615: something else has written to the page
    expected a whole page, found one that is being written
    expected a page that begins with "pinbuddy", found something else
    expected a file of 4096 bytes, found one of 4095
    expected a file of 4096 bytes, found one of 0
    expected a file of 4096 bytes, found one of 1099511627776
    "#);
}

#[test]
fn who_has_no_page_is_told_what_to_do_and_none_of_another_process_is_shown() {
    let (_file, _) = with(&bytes(&[(3, 1)]));
    assert!(matches!(state(std::process::id()), State::Wrong(why) if why.contains("found that of process 1")));
    // Other tests of this process show pages.
    let mut other = std::process::Command::new("sleep");
    let mut other = other.arg("60").spawn().unwrap();
    let found = state(other.id());
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(matches!(found, State::Silent(why) if why.contains("BUDDY_LIVE=1")));
    // No process has so large an id.
    assert_eq!(state(u32::MAX), State::Ended);
}

#[test]
fn a_pipe_of_that_name_is_not_waited_for() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let said = read(&path).unwrap_err();
    assert!(said.contains("expected a file of 4096 bytes"), "{said}");
}
