//! A plan of a whole run: it serves that run, and gives another one room.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;

use pinbuddy_slots::{GRANULE, Slots};
use proptest::prelude::*;

use crate::layouts::{lane, pinned, row};

/// Slots of so many granules, one behind the other, and so much room behind them.
fn slots(granules: &[usize], room: usize) -> Slots {
    let mut layout = row(granules);
    layout.lanes = vec![lane(0..granules.len() as u32, [])];
    layout.regions[0] += room * GRANULE;
    pinned(&layout)
}

#[test]
fn a_program_that_does_the_same_is_served_from_slots() {
    let sizes: Vec<usize> = (1..200).collect();
    let mut slots = slots(&sizes, 0);
    for &size in &sizes {
        assert!(slots.request(0, size * GRANULE).is_some());
    }
    assert!(!slots.has_only_room());
}

#[test]
fn a_request_in_ten_that_differs_does_not_end_it() {
    let sizes: Vec<usize> = (1..200).collect();
    let mut slots = slots(&sizes, 1000);
    for &size in &sizes {
        if size % 10 == 0 {
            assert!(slots.request(0, 777 * GRANULE).is_none());
        }
        slots.request(0, size * GRANULE);
    }
    assert!(!slots.has_only_room());
    assert!(slots.counts().hits > 190, "{:?}", slots.counts());
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

proptest! {
    #[test]
    fn nothing_overlaps_before_and_after_it_is_over(
        sizes in prop::collection::vec(1_usize..20, 1..40),
        asked in prop::collection::vec((1_usize..20, any::<bool>()), 1..200),
    ) {
        let mut slots = slots(&sizes, 10);
        let mut held: HashMap<usize, (usize, Option<u32>)> = HashMap::new();
        for (granules, frees) in asked {
            let bytes = granules * GRANULE;
            let taken = slots.request(0, bytes).map(|it| (it.address, Some(it.slot)));
            let got = taken.or_else(|| slots.borrow(bytes).map(|it| (it.address, None)));
            if let Some((address, slot)) = got {
                let is_free = |(&at, &(length, _)): (&usize, &(usize, Option<u32>))| {
                    at + length <= address || address + bytes <= at
                };
                prop_assert!(held.iter().all(is_free));
                held.insert(address, (bytes, slot));
            }
            if let Some(&address) = held.keys().min().filter(|_| frees) {
                let was_in_use = match held.remove(&address).unwrap().1 {
                    Some(slot) => slots.release(slot),
                    None => slots.give_back(address),
                };
                prop_assert!(was_in_use);
            }
        }
    }
}
