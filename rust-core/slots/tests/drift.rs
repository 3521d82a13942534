//! Lanes that lose their place, for a while and for good.
#![allow(clippy::expect_used, reason = "tests")]

use pinbuddy_slots::{GRANULE, Slots};

use crate::layouts::{BASE, pinned, row};

#[test]
fn a_lane_that_does_something_else_for_good_is_given_up_until_it_comes_back() {
    let sizes: Vec<usize> = (0..100).map(|at| 1 + (at * 7) % 23).collect();
    let mut slots = pinned(&row(&sizes));
    let round = |slots: &mut Slots| {
        let taken = sizes.iter().filter_map(|&it| slots.request(0, it * GRANULE));
        let taken: Vec<_> = taken.collect();
        assert!(taken.iter().all(|it| slots.release(it.slot)));
        taken.len()
    };
    assert_eq!(round(&mut slots), sizes.len());
    assert_eq!((slots.counts().drift, slots.has_given_up()), (0, false));
    // Marks put the cursor back, and do not hide that nothing fits.
    let mut asked = 0;
    while !slots.has_given_up() && asked < 10_000 {
        for step in 0..37 {
            assert_eq!(slots.request(0, (30 + step % 5) * GRANULE), None);
            asked += 1;
        }
        slots.iteration(0);
    }
    assert!((4096..4200).contains(&asked), "{asked}");
    let counts = slots.counts();
    assert!(counts.drift > 0 && counts.given_up == 1, "{counts:?}");
    // Nothing is kept for the lane.
    assert_eq!(slots.take_unwanted().len(), 1);
    slots.pinned(0, BASE);
    round(&mut slots);
    assert_eq!(round(&mut slots), sizes.len(), "it fits again");
    assert!(!slots.has_given_up());
    assert_eq!(slots.counts().given_up, 1);
}

#[test]
fn a_lane_finds_its_place_after_a_phase_that_the_plan_does_not_know_which_is_no_reason_to_give_up() {
    let sizes: Vec<usize> = (0..100).map(|at| 1 + (at * 7) % 23).collect();
    let mut slots = pinned(&row(&sizes));
    for round in 1..=200 {
        let before = slots.counts().hits;
        for &size in &sizes {
            if let Some(taken) = slots.request(0, size * GRANULE) {
                slots.release(taken.slot);
            }
        }
        assert!(slots.counts().hits - before >= 95, "round {round}");
        // An evaluation.
        for step in 0..37 {
            assert_eq!(slots.request(0, (30 + step % 5) * GRANULE), None);
        }
        assert!(slots.counts().resyncs <= round);
    }
    let counts = slots.counts();
    assert!((150..=200).contains(&counts.drift), "{counts:?}");
    assert_eq!((counts.given_up, slots.has_given_up()), (0, false));
}
