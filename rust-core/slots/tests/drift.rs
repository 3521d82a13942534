//! Lanes that lose their place, for a while and for good. And a plan of a whole run: it serves that run, and gives another one room.

use pinbuddy_slots::{GRANULE, Slots};

use crate::layouts::{BASE, lane, pinned, row};

/// The steps of the plan, in granules.
fn sizes() -> Vec<usize> {
    (0..100).map(|at| 1 + (at * 7) % 23).collect()
}

/// All steps of the plan: how many have their slots.
fn round(slots: &mut Slots) -> usize {
    let taken: Vec<_> = sizes().into_iter().filter_map(|it| slots.request(0, it * GRANULE)).collect();
    assert!(taken.iter().all(|it| slots.release(it.slot)));
    taken.len()
}

/// What the plan does not know, such as an evaluation.
fn something_else(slots: &mut Slots) {
    for step in 0..37 {
        assert_eq!(slots.request(0, (30 + step % 5) * GRANULE), None);
    }
}

#[test]
fn a_lane_that_does_something_else_for_good_is_given_up_until_it_comes_back() {
    let mut slots = pinned(&row(&sizes()));
    assert_eq!(round(&mut slots), 100);
    assert_eq!((slots.counts().drift, slots.has_given_up()), (0, false));
    // Marks put the cursor back, and do not hide that nothing fits.
    let mut asked = 0;
    while !slots.has_given_up() && asked < 10_000 {
        something_else(&mut slots);
        asked += 37;
        slots.iteration(0);
    }
    assert!((4096..4200).contains(&asked), "{asked}");
    let counts = slots.counts();
    assert!(counts.drift > 0 && counts.given_up == 1, "{counts:?}");
    // Nothing is kept for the lane.
    assert_eq!(slots.take_unwanted().len(), 1);
    slots.pinned(0, BASE);
    round(&mut slots);
    assert_eq!(round(&mut slots), 100, "it fits again");
    assert_eq!((slots.counts().given_up, slots.has_given_up()), (1, false));
}

#[test]
fn a_lane_finds_its_place_after_a_phase_that_the_plan_does_not_know_which_is_no_reason_to_give_up() {
    let mut slots = pinned(&row(&sizes()));
    for number in 1..=200 {
        assert!(round(&mut slots) >= 95, "round {number}");
        something_else(&mut slots);
        assert!(slots.counts().resyncs <= number);
    }
    let counts = slots.counts();
    assert!((150..=200).contains(&counts.drift), "{counts:?}");
    assert_eq!((counts.given_up, slots.has_given_up()), (0, false));
}

/// Slots of so many granules, one behind the other, and so much room behind them.
fn once(granules: &[usize], room: usize) -> Slots {
    let mut layout = row(granules);
    layout.lanes = vec![lane(0..granules.len() as u32, [])];
    layout.regions[0] += room * GRANULE;
    pinned(&layout)
}

#[test]
fn a_program_that_does_the_same_is_served_from_slots_and_a_request_in_ten_that_differs_does_not_end_it() {
    let sizes: Vec<usize> = (1..200).collect();
    for (differ, fewest) in [(false, sizes.len()), (true, 191)] {
        let mut slots = once(&sizes, 1000);
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
    let mut slots = once(&[4, 4, 4, 4], 4);
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
