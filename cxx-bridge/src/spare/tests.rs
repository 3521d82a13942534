//! A process that has no more memory goes on.

use std::hint::black_box;
use std::time::Duration;

use super::*;
use crate::alone::{self, limit, used};
use crate::budget::{Account, Capacity as _};
use crate::handle::tests::{numbers, with};

/// In the child: anything.
const VARIABLE: &str = "PINBUDDY_TEST_NO_MEMORY";
const MIB: usize = 1 << 20;

/// Runs the test of this name in a child, where it does `work`, which ends well.
fn in_a_child(test: &str, work: fn()) {
    if std::env::var_os(VARIABLE).is_some() {
        // The harness's thread comes to rest: glibc ends the process where that finds no memory.
        std::thread::sleep(Duration::from_millis(300));
        return work();
    }
    alone::run(&format!("spare::tests::{test}"), VARIABLE, "1");
}

/// Takes all that the system has left for lists of so many bytes and more.
fn take_all_of(least: usize) {
    let mut bytes = 64 * MIB;
    while bytes >= least {
        let layout = Layout::from_size_align(bytes, 16).unwrap();
        // SAFETY: it has a size.
        while !black_box(unsafe { System.alloc(layout) }).is_null() {}
        bytes /= 2;
    }
}

#[test]
fn a_request_that_finds_no_memory_is_refused_and_what_is_cached_is_given_back() {
    in_a_child("a_request_that_finds_no_memory_is_refused_and_what_is_cached_is_given_back", || {
        let handle = with(&[("BUDDY_WARMUP", "sync"), ("BUDDY_BLOCK_COUNT", "4")]);
        let account = Account::new("/".into(), || false);
        let block = handle.request(8 * MIB).unwrap();
        numbers(handle).largest.set(64 * MIB);
        limit(libc::RLIMIT_AS, used("VmSize:"));
        take_all_of(256);
        let refused = handle.request(140 * MIB);
        let line = handle.refused_line(140 * MIB);
        let standing = account.standing();
        account.claim(MIB);
        handle.release(block.block);
        handle.empty_cache();
        limit(libc::RLIMIT_AS, libc::RLIM_INFINITY);
        assert_eq!(refused, None);
        assert!(line.contains("140 MiB were asked for"), "{line}");
        assert!(!standing.limits.is_empty(), "{standing:?}");
        assert!(numbers(handle).pinned.lock().unwrap().is_empty());
    });
}

/// Spare memory is as the system's: what was written stays, and there is none that two have.
#[test]
fn lists_in_spare_memory_hold_their_own_data() {
    in_a_child("lists_in_spare_memory_hold_their_own_data", || {
        limit(libc::RLIMIT_AS, used("VmSize:"));
        take_all_of(256);
        let mut lists: Vec<Vec<usize>> = Vec::with_capacity(64);
        for _ in 0..3 {
            lists.extend((0..40).map(|_| Vec::new()));
            for round in 0..1000 {
                for (of, list) in lists.iter_mut().enumerate() {
                    list.push(of + round);
                }
            }
            let is_own = |(of, list): (usize, &Vec<usize>)| list.iter().enumerate().all(|(at, it)| *it == of + at);
            assert!(lists.iter().enumerate().all(is_own));
            assert!(vec![0u8; 9000].iter().all(|it| *it == 0));
            lists.clear();
        }
        assert!(Vec::<u8>::new().try_reserve(65 << 10).is_err());
        limit(libc::RLIMIT_AS, libc::RLIM_INFINITY);
    });
}
