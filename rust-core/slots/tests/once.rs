//! A plan of a whole run: it serves that run, and gives another one room.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use pinbuddy_slots::{GRANULE, Slots};

use crate::layouts::{lane, pinned, row};

/// Slots of so many granules, one behind the other, and so much room behind them.
fn slots(granules: &[usize], room: usize) -> Slots {
    let mut layout = row(granules);
    layout.lanes = vec![lane(0..granules.len() as u32, [])];
    layout.regions[0] += room * GRANULE;
    pinned(&layout)
}

#[test]
fn a_program_that_does_the_same_is_served_from_slots_and_a_request_in_ten_that_differs_does_not_end_it() {
    let sizes: Vec<usize> = (1..200).collect();
    for (differ, fewest) in [(false, sizes.len()), (true, 191)] {
        let mut slots = slots(&sizes, 1000);
        for &size in &sizes {
            if differ && size % 10 == 0 {
                assert!(slots.request(0, 777 * GRANULE).is_none());
            }
            slots.request(0, size * GRANULE);
        }
        assert!(!slots.has_only_room());
        assert!(slots.counts().hits >= fewest as u64, "{:?}", slots.counts());
    }
}

#[test]
fn another_program_has_all_that_is_idle() {
    let mut slots = slots(&[4, 4, 4, 4], 4);
    let held = slots.request(0, 4 * GRANULE).unwrap();
    for _ in 0..8 {
        assert!(slots.request(0, 7 * GRANULE).is_none());
    }
    assert!(slots.has_only_room());
    assert!(slots.request(0, 4 * GRANULE).is_none(), "for good");
    let long = slots.borrow(16 * GRANULE).expect("across all slots");
    assert_eq!(slots.borrow(GRANULE), None);
    assert!(slots.give_back(long.address) && slots.release(held.slot));
    assert!(slots.borrow(20 * GRANULE).is_some());
}
