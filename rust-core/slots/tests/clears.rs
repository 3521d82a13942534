//! Clears that the plan foresees, and those that it does not; a request whose place is in a region that one has returned.

use pinbuddy_slots::{GRANULE, Lane, Layout, Slot, Slots};

use crate::layouts::{lane, one, pinned, slot};

/// Three regions, of which the first is needed once; the loop asks for the second and the third, and empties the cache
/// before it comes to the third.
fn slots() -> Slots {
    let slot = |region, granules| Slot { region, ..slot(granules, 0) };
    let layout = Layout {
        regions: [1, 2, 3].map(|it| it * GRANULE).to_vec(),
        slots: vec![slot(0, 1), slot(1, 2), slot(2, 3)],
        lanes: vec![Lane { prologue: vec![0], period: vec![1, 2, 1, 2], turns: 2, clears: vec![2] }],
    };
    pinned(&layout)
}

fn use_once(slots: &mut Slots, granules: usize) {
    let taken = slots.request(0, granules * GRANULE).unwrap();
    assert!(slots.release(taken.slot));
}

fn numbers(taken: Vec<(usize, std::ops::Range<usize>)>) -> Vec<usize> {
    taken.into_iter().map(|it| it.0).collect()
}

#[test]
fn where_the_loop_empties_the_cache_what_it_needs_again_is_not_unwanted_unless_the_lane_is_in_doubt() {
    let mut slots = slots();
    assert!(!slots.foresees_a_clear(), "before the first request");
    for granules in [1, 2] {
        use_once(&mut slots, granules);
    }
    for turn in 0..4 {
        assert!(slots.foresees_a_clear(), "turn {turn}");
        assert_eq!(slots.idle_bytes(), if turn == 0 { 6 } else { 5 } * GRANULE);
        let unwanted = numbers(slots.take_unwanted());
        assert_eq!(unwanted, if turn == 0 { vec![0] } else { vec![] });
        use_once(&mut slots, 3);
        assert!(!slots.foresees_a_clear(), "turn {turn}, behind it");
        use_once(&mut slots, 2);
    }
    assert_eq!(slots.request(0, 9 * GRANULE), None);
    assert!(!slots.foresees_a_clear(), "in doubt");
    assert_eq!(numbers(slots.take_idle()), [1, 2], "all the same");
}

#[test]
fn a_request_whose_region_was_returned_gets_its_slot_once_that_is_there() {
    let mut layout = one(1, vec![slot(1, 0); 2], lane([], 0..2));
    layout.regions.push(GRANULE);
    layout.slots[1].region = 1;
    let mut slots = Slots::new(&layout).unwrap();
    slots.pinned(0, 1 << 30);
    assert_eq!(slots.request(0, 1).map(|it| it.slot), Some(0));
    assert_eq!(slots.request(0, 1), None);
    assert_eq!(slots.take_needed(1), Some((1, 1)));
    assert_eq!(slots.take_needed(1), None, "once");
    assert_eq!(slots.serve_needed(1), None, "it is not there yet");
    slots.pinned(1, 2 << 30);
    let address = slots.serve_needed(1).map(|it| it.address);
    assert_eq!((address, slots.counts().hits, slots.counts().misses), (Some(2 << 30), 2, 0));
    // What another request needed is not this one's.
    slots.take_idle();
    assert!(slots.release(1) && slots.take_idle().len() == 1);
    assert_eq!((slots.request(0, 1), slots.request(0, 1)), (None, None));
    assert_eq!(slots.take_needed(2 * GRANULE), None);
}
