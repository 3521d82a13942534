//! A ring of entries while it is drained and changes hands.

use std::sync::Arc;

use crate::record::{Raw, Ring};
use shuttle::thread;

use super::explore;

/// Entries of two owners, one after the other, while they are drained: none is lost unless that is said, none is found
/// twice or under another's number.
fn a_ring_changes_hands() {
    const EACH: u64 = 6;
    let ring = Arc::new(Ring::<4>::new(0).unwrap());
    let owner = |number: u32| {
        let ring = Arc::clone(&ring);
        move || {
            let own = loop {
                match ring.claim(number) {
                    Some(own) => break own,
                    None => thread::yield_now(),
                }
            };
            let entry = |what| Raw { ticks: 0, allocation: number.into(), what };
            let kept = (0..EACH).filter(|&what| own.push(entry(what), 0)).count();
            own.leave();
            kept
        }
    };
    let owners = [7, 8].map(|number| thread::spawn(owner(number)));
    let mut all = Vec::new();
    let mut lost = 0;
    let mut drain = || {
        let mut found = Vec::new();
        let (number, news) = ring.drain(|it| found.push(it));
        assert!(found.iter().all(|it| it.allocation == u64::from(number)));
        all.extend(found);
        lost += news.pinned;
        all.len() as u64 + lost == 2 * EACH
    };
    while !drain() {
        thread::yield_now();
    }
    let kept: usize = owners.into_iter().map(|it| it.join().unwrap()).sum();
    assert_eq!(kept, all.len());
    for number in [7, 8] {
        let own = all.iter().filter(|it| it.allocation == number);
        let whats: Vec<u64> = own.map(|it| it.what).collect();
        assert!(whats.is_sorted_by(|a, b| a < b), "{whats:?}");
    }
}

#[test]
fn entries_are_read_once_while_a_ring_changes_hands() {
    explore(a_ring_changes_hands);
}
