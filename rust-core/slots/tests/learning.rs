//! Lanes that learn how a program behaves, and what they lend.

use std::time::{Duration, Instant};

use pinbuddy_slots::{Counts, GRANULE, Layout, Lent, Slot, Slots, Taken};

use crate::layouts::{BASE, lane, learning, one, row, slot};

/// A step: blocks that live until the way back, each with one that lives for a moment.
fn step(slots: &mut Slots, sizes: &[usize]) -> u32 {
    let mut hits = 0;
    let mut live = Vec::new();
    for &size in sizes {
        live.extend(slots.request(0, size * GRANULE));
        if let Some(moment) = slots.request(0, GRANULE) {
            hits += 1;
            slots.release(moment.slot);
        }
    }
    for taken in live.into_iter().rev() {
        hits += 1;
        slots.release(taken.slot);
    }
    hits
}

/// The plan of such steps: all begin where blocks that live on end.
fn steps(sizes: &[usize]) -> Layout {
    let (mut slots, mut offset) = (Vec::new(), 0);
    for &size in sizes {
        for (granules, next) in [(size, size), (1, 0)] {
            slots.push(slot(granules, offset));
            offset += next;
        }
    }
    let steps = lane([], 0..slots.len() as u32);
    let mut layout = one(offset + 1, slots, steps);
    layout.regions.push(50 * GRANULE);
    layout
}

/// The slots after one such step, and in the next one: its first block lives, and the moment beside it is over.
fn begun(sizes: &[usize]) -> (Slots, Taken) {
    let mut slots = learning(&steps(sizes));
    step(&mut slots, sizes);
    let first = slots.request(0, sizes[0] * GRANULE).unwrap();
    let moment = slots.request(0, GRANULE).unwrap();
    slots.release(moment.slot);
    (slots, first)
}

/// Where a request has a place between blocks.
#[track_caller]
fn lent(slots: &mut Slots, granules: usize) -> usize {
    match slots.lend(0, granules * GRANULE) {
        Some(Lent::Place(it)) => it.address,
        other => panic!("{granules}: {other:?}"),
    }
}

/// Layers are alike, so sizes do not say which one it is.
const ALIKE: [usize; 12] = [3, 4, 3, 4, 3, 4, 3, 4, 3, 4, 3, 4];

#[test]
fn a_lane_that_learns_begins_again_where_nothing_is_live() {
    let mut slots = learning(&steps(&ALIKE));
    assert_eq!(step(&mut slots, &ALIKE), 24);
    assert_eq!(step(&mut slots, &ALIKE), 24);
    for _ in 0..3 {
        // Forward only, of some layers: nothing but the input is kept.
        let input = slots.request(0, 3 * GRANULE).unwrap();
        for &size in &ALIKE[1..8] {
            for granules in [1, size] {
                let taken = slots.request(0, granules * GRANULE);
                taken.map(|it| slots.release(it.slot));
            }
        }
        slots.release(input.slot);
        let first = slots.request(0, 3 * GRANULE).unwrap();
        assert_eq!(first.address, BASE, "the first layer's place");
        slots.release(first.slot);
    }
}

#[test]
fn when_other_streams_are_done_does_not_say_where_a_lane_is() {
    let mut slots = learning(&row(&[3; 12]));
    for are_late in [true, true, false, true, false] {
        let mut late = Vec::new();
        for step in 0..12 {
            let taken = slots.request(0, 3 * GRANULE).unwrap();
            assert_eq!(taken.slot, step, "{are_late}");
            slots.set_pending(taken.slot, true);
            match are_late {
                true => late.push(taken.slot),
                false => assert!(slots.release(taken.slot)),
            }
        }
        late.into_iter().for_each(|slot| assert!(slots.release(slot)));
    }
}

#[test]
fn what_is_lent_is_not_wanted_for_as_long_as_it_lives() {
    let layout = steps(&ALIKE);
    let mut slots = learning(&layout);
    step(&mut slots, &ALIKE);
    let first = slots.request(0, 3 * GRANULE).unwrap();
    // In place of the moment's block, and longer: behind what the next steps want.
    assert_eq!(slots.request(0, 2 * GRANULE), None);
    assert_eq!(lent(&mut slots, 40) / BASE, 2, "what no slot names comes first");
    // Nothing is wanted for a moment but the next step.
    let other = lent(&mut slots, 20);
    assert_eq!(other / BASE, 1);
    let place = (other - first.address) / GRANULE;
    assert!(place >= 7, "{place}: the next step's place");
    assert_eq!(slots.lend(0, 40 * GRANULE), None, "no region has room");
    assert!(slots.give_back(other));
}

#[test]
fn a_smaller_request_gets_the_slot_of_the_one_that_it_stands_for() {
    assert_eq!(learning(&steps(&[8, 8, 8])).lend(0, GRANULE), None, "the thread has no lane yet");
    let (mut slots, whole) = begun(&[8, 8, 8]);
    assert_eq!(slots.request(0, 5 * GRANULE), None);
    lent(&mut slots, 50);
    let before = slots.counts();
    let Some(Lent::Slot(taken)) = slots.lend(0, 5 * GRANULE) else {
        panic!("the second block's slot is free");
    };
    let counts = slots.counts();
    assert_eq!(counts.hits, before.hits + 1, "a request is counted once");
    let requests = |it: Counts| it.hits + it.misses + it.unplanned;
    assert_eq!(requests(counts), requests(before));
    assert_eq!(taken.address, whole.address + 8 * GRANULE);
    assert_eq!(slots.bytes_of(taken.slot), 8 * GRANULE);
}

/// A request that is longer than its slot takes a bit of the next one, rather than all of it elsewhere.
#[test]
fn a_longer_request_takes_its_own_slot_and_a_bit_more() {
    let (mut slots, first) = begun(&[8, 4, 2, 2]);
    // Nothing is left of the region without slots.
    assert!(slots.borrow(50 * GRANULE).is_some());
    assert_eq!(slots.request(0, 5 * GRANULE), None);
    // Its slot is idle, and one granule behind it.
    let longer = lent(&mut slots, 5);
    assert_eq!(longer, first.address + 8 * GRANULE);
    // Whoever is in the way of that gets what is left.
    let mut places = Vec::new();
    for size in [1, 2] {
        let taken = slots.request(0, size * GRANULE);
        places.push(taken.map_or_else(|| lent(&mut slots, size), |it| it.address));
    }
    assert!(places.iter().all(|&at| at >= longer + 5 * GRANULE), "{places:?}");
}

/// What has to go elsewhere for a request may be as long as the request, and not many times as long.
#[test]
fn a_request_takes_no_place_from_one_that_is_much_longer() {
    let served = |next: usize, bytes: usize| {
        let (mut slots, _) = begun(&[8, 2, next]);
        assert!(slots.borrow(50 * GRANULE).is_some());
        assert_eq!(slots.request(0, bytes * GRANULE), None);
        slots.lend(0, bytes * GRANULE).is_some()
    };
    assert!(served(12, 3), "one of the next slot's twelve");
    assert!(!served(13, 3), "one of its thirteen");
    assert!(served(13, 13), "all that is left but two");
}

/// The cells of long regions are long: short requests would fill them with nothing.
#[test]
fn a_request_takes_no_cell_that_is_much_longer() {
    const MIB: usize = 1 << 20;
    let slots = [(60 << 10, 0), (3, 60 << 10)].map(|(mib, offset)| slot(mib * MIB / GRANULE, offset * MIB / GRANULE));
    let layout = one((64 << 30) / GRANULE, slots.to_vec(), lane([], [0, 1]));
    let mut slots = learning(&layout);
    for _ in 0..20 {
        assert_eq!(slots.request(0, MIB / 4), None);
    }
    assert_eq!(slots.lend(0, MIB / 4), None, "a cell is 4 MiB long");
    assert!(slots.lend(0, 3 * MIB).is_some());
    // Where there is no other memory it is better than none.
    assert!(slots.lend_any(MIB / 4).is_some());
}

/// Else PyTorch's allocator has memory for it by the time that the region is taken.
#[test]
fn a_request_that_no_region_has_room_for_has_the_shortest_taken_that_is_not_there() {
    let mut layout = steps(&[8, 60]);
    layout.regions.extend([70 * GRANULE, 90 * GRANULE]);
    let mut slots = Slots::learning(&layout).unwrap();
    slots.pinned(0, BASE);
    slots.pinned(1, 2 * BASE);
    slots.request(0, 8 * GRANULE).unwrap();
    slots.request(0, 60 * GRANULE).unwrap();
    let lend = |slots: &mut Slots, granules: usize| {
        assert_eq!(slots.request(0, granules * GRANULE), None);
        slots.lend(0, granules * GRANULE)
    };
    assert!(matches!(lend(&mut slots, 50), Some(Lent::Place(_))));
    assert_eq!(lend(&mut slots, 60), Some(Lent::Needs(None, 2)));
    slots.pinned(2, 3 * BASE);
    let place = slots.lend_any(60 * GRANULE).unwrap();
    assert_eq!(place.address, 3 * BASE);
    assert_eq!(lend(&mut slots, 60), Some(Lent::Needs(None, 3)));
    assert_eq!(lend(&mut slots, 91), None, "it is longer than all");
    assert_eq!(lend(&mut slots, 61), None, "no step is so long");
    assert_eq!(lend(&mut slots, 60), None, "the program was edited");
}

/// Weights have a region, and each iteration's blocks have one.
#[test]
fn a_program_that_was_edited_takes_no_region_that_never_was_there() {
    let place = |granules, region, offset| Slot { region, ..slot(granules, offset) };
    let mut layout = one(14, vec![slot(1, 0), slot(2, 1), slot(3, 3), slot(8, 6)], lane([0, 1, 2, 3], 4..8));
    layout.slots.extend([place(4, 1, 0), place(5, 1, 4), place(6, 1, 9), place(7, 1, 15)]);
    layout.regions.push(22 * GRANULE);
    let after = |weights: &[usize], request: usize| {
        let mut slots = Slots::learning(&layout).unwrap();
        slots.pinned(0, BASE);
        for granules in weights {
            slots.request(0, granules * GRANULE);
            slots.take_needed(granules * GRANULE);
        }
        slots.request(0, request * GRANULE);
        slots.take_needed(request * GRANULE).map(|it| it.1)
    };
    assert_eq!(after(&[1, 2, 3, 8], 4), Some(1));
    assert_eq!(after(&[1, 2, 9, 3, 8, 4, 5, 6, 7, 4], 5), Some(1), "one request more is no edit");
    assert_eq!(after(&[1, 2, 9, 3, 8], 4), None, "but nothing is taken while the lane is in doubt");
    assert_eq!(after(&[1, 2, 9, 9, 3, 8, 4, 5, 6, 7, 4], 5), None, "two are one");
    assert_eq!(after(&[1, 2, 3, 8, 9, 10, 11, 12, 4, 5, 6, 7, 4], 5), None, "all of an iteration");
}

/// It would meet the plan again and again, each time with other blocks in its places.
#[test]
fn a_program_that_gets_lost_in_its_first_pass_follows_the_plan_no_more_and_gets_what_is_idle() {
    let sizes: Vec<usize> = (2..14).collect();
    for is_first in [true, false] {
        let mut slots = learning(&steps(&sizes));
        if !is_first {
            step(&mut slots, &sizes);
        }
        for granules in 30..50 {
            slots.request(0, granules * GRANULE);
        }
        assert_eq!(step(&mut slots, &sizes) == 0, is_first);
        assert_eq!(step(&mut slots, &sizes) == 0, is_first);
        assert_eq!(slots.request(0, 14 * GRANULE), None);
        lent(&mut slots, 14);
    }
}

#[test]
fn a_region_that_was_there_is_taken_again_whatever_the_program_does() {
    let mut slots = learning(&steps(&ALIKE));
    step(&mut slots, &ALIKE);
    for granules in [20, 21, 22, 23] {
        slots.request(0, granules * GRANULE);
    }
    assert_eq!(slots.take_idle().len(), 2);
    assert_eq!(slots.request(0, 60 * GRANULE), None);
    assert_eq!(slots.lend(0, 50 * GRANULE), Some(Lent::Needs(None, 1)));
}

/// A file of a few megabytes may say this. Without bounds it is learned from for an hour, and each request takes seconds.
#[test]
fn a_plan_of_long_slots_in_many_steps_is_ready_at_once() {
    const GRANULES: usize = 1 << 16;
    let mut slots: Vec<Slot> = (0..GRANULES).map(|at| slot(1, at)).collect();
    slots.push(slot(GRANULES, 0));
    let steps = lane([], vec![GRANULES as u32; 4 << 20]);
    let layout = one(GRANULES, slots, steps);
    let began = Instant::now();
    let mut slots = learning(&layout);
    let whole = |slots: &mut Slots, times| {
        for _ in 0..times {
            let taken = slots.request(0, GRANULES * GRANULE).unwrap();
            slots.release(taken.slot);
        }
    };
    // To where nothing was learned: then all that the lane still wants is kept free.
    whole(&mut slots, 1 << 13);
    for granules in 1..20 {
        assert_eq!(slots.request(0, granules * GRANULE), None);
        if let Some(Lent::Place(it)) = slots.lend(0, granules * GRANULE) {
            slots.give_back(it.address);
        }
        // The lane is sure of its place again.
        whole(&mut slots, 8);
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
