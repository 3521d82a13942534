//! A stream's plan by itself: the test plays C++.

use super::*;

const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

/// A device of the test's own, as all tests share the tallies.
fn plan(device: i8) -> StreamPlan {
    StreamPlan::of_two([4 * MIB, 12 * MIB - 1], device)
}

fn reserve(plan: &StreamPlan) {
    (0..2).for_each(|region| plan.state.lock().wants(region));
    assert!(plan.begin_reserve() && !plan.begin_reserve());
    for region in 0..2 {
        assert!(plan.lacks(region));
        plan.reserved(region, (region + 1) * GIB, 16 * MIB, true);
    }
    assert_eq!(plan.end_reserve(true), []);
}

fn ask(bytes: usize) -> Ask {
    Ask { bytes, rounded: bytes, oversize_from: 6 * MIB, borrows: false, needs: -1, after: Step::Begin }
}

fn request(plan: &StreamPlan) -> Result<usize, Step> {
    plan.request(&mut ask(4 * MIB - 1), Step::Peaks).map(|it| it.address)
}

/// The place of a request for which a region is taken, that is so long to PyTorch's allocator.
fn taken(plan: &StreamPlan, region: usize, held: usize, bytes: usize) -> Place {
    let mut ask = ask(bytes);
    assert_eq!(plan.request(&mut ask, Step::Peaks), Err(Step::Reserve));
    assert!(plan.begin_reserve() && plan.lacks(region) && !plan.lacks(1 - region));
    plan.reserved(region, (region + 1) * GIB, held, held >= ask.oversize_from);
    assert_eq!(plan.end_reserve(true), []);
    plan.request(&mut ask, Step::Peaks).unwrap()
}

/// A plan whose first region is there, and a block in it.
fn begun(device: i8) -> (StreamPlan, Place) {
    let plan = plan(device);
    let held = taken(&plan, 0, 4 * MIB, 4 * MIB);
    (plan, held)
}

fn free(plan: &StreamPlan, address: usize) -> (bool, usize) {
    let freed = plan.free(address).unwrap();
    assert_eq!(freed.bytes, 4 * MIB, "whole steps");
    let idle = if freed.is_last { plan.take_dropped() } else { Vec::new() };
    (freed.waits, idle.len())
}

#[test]
fn a_request_waits_for_what_comes_before_it() {
    let plan = plan(1);
    assert_eq!((plan.regions(), plan.region_bytes(1)), (2, 12 * MIB));
    reserve(&plan);
    let mut ask = ask(4 * MIB - 1);
    assert_eq!(plan.request(&mut ask, Step::Begin), Err(Step::Peaks));
    plan.tally.read(super::super::tally::device_passed(), &[GIB as i64; 3]);
    let given = plan.request(&mut ask, Step::Begin);
    assert_eq!(given.map(|it| it.address), Ok(GIB));
    assert!(plan.uses(GIB, 7 << 8) && !plan.uses(GIB + 1, 7 << 8));
    assert_eq!((plan.completes(GIB), plan.requested(GIB)), (0, 4 * MIB - 1));
    assert_eq!(free(&plan, GIB), (true, 0));
    assert_eq!(plan.request(&mut ask, Step::Begin), Err(Step::Settle));
    assert!(plan.request(&mut ask, Step::Settle).is_ok());
    assert_eq!(plan.free(GIB), None, "it was freed before");
}

#[test]
fn a_region_is_taken_with_the_first_request_that_has_a_place_there() {
    let plan = plan(7);
    // Nothing is wanted yet.
    assert!(!plan.begin_reserve() && !plan.lacks(0) && !plan.lacks(1));
    for region in 0..2 {
        let given = taken(&plan, region, 16 * MIB, 4 * MIB);
        assert_eq!(given.address, (region + 1) * GIB);
    }
    assert_eq!(plan.counts().0.misses, 0);
    // The first region is idle, and comes back when it is needed, which the second one's next request does not do.
    plan.free(GIB).unwrap();
    assert_eq!(plan.give_back(GiveBack::Cleared).len(), 1);
    assert!(!plan.begin_reserve() && !plan.lacks(0));
    let mut ask = ask(4 * MIB);
    assert_eq!(plan.request(&mut ask, Step::Peaks), Err(Step::Reserve));
    assert!(plan.begin_reserve() && plan.lacks(0));
}

#[test]
fn a_region_is_taken_with_a_request_that_finds_no_place_elsewhere() {
    let (plan, _) = begun(11);
    let second = taken(&plan, 1, 12 * MIB, 4 * MIB);
    plan.free(second.address).unwrap();
    assert_eq!(plan.give_back(GiveBack::Cleared).len(), 1);
    let given = taken(&plan, 1, 12 * MIB, 7 * MIB);
    assert_eq!(given.address, 2 * GIB);
}

#[test]
fn a_region_that_is_refused_stays_away_and_others_serve_on_unless_it_was_the_first() {
    let (plan, held) = begun(8);
    let mut second = ask(4 * MIB);
    assert_eq!(plan.request(&mut second, Step::Peaks), Err(Step::Reserve));
    assert!(plan.begin_reserve() && plan.lacks(1));
    assert!(!plan.refused(), "the first one holds a block");
    assert_eq!(plan.end_reserve(false), []);
    assert_eq!(plan.request(&mut second, Step::Reserve), Err(Step::Unserved));
    plan.free(held.address).unwrap();
    for _ in 1..=FEWEST {
        assert!(!plan.is_dropped());
        assert_eq!(plan.request(&mut ask(MIB), Step::Begin), Err(Step::Unserved));
    }
    assert_eq!(plan.request(&mut ask(MIB), Step::Begin), Err(Step::Reserve));
    let plan = self::plan(9);
    let mut first = ask(4 * MIB);
    assert_eq!(plan.request(&mut first, Step::Peaks), Err(Step::Reserve));
    assert!(plan.begin_reserve() && plan.refused());
    assert_eq!(plan.end_reserve(false), []);
    assert!(plan.is_dropped());
    assert_eq!(plan.request(&mut first, Step::Reserve), Err(Step::Unserved));
}

#[test]
fn a_place_is_free_once_all_events_are_complete() {
    let plan = plan(2);
    reserve(&plan);
    let first = request(&plan).unwrap();
    let _ = [plan.uses(first, 7), plan.uses(first, 8), plan.uses(first, 7)];
    free(&plan, first);
    assert_eq!(plan.to_record(), Some((first, vec![7, 8])));
    plan.recorded(first, &[70, 80]);
    assert_eq!((plan.to_record(), plan.pending().streams()), (None, 2));
    let active = |plan: &StreamPlan| plan.counted().0[4].current as usize;
    assert_eq!(plan.event_over(first), 0);
    assert_eq!((plan.shown()[0].live, active(&plan)), (false, 4 * MIB));
    assert_eq!(plan.event_over(first), 4 * MIB - 1);
    plan.done(first);
    assert!(plan.shown().is_empty());
    assert_eq!((active(&plan), plan.idle()), (0, 32 * MIB));
}

#[test]
fn regions_come_back_at_once_or_an_iteration_later_and_later_each_time() {
    let plan = plan(3);
    reserve(&plan);
    let taken = plan.give_back(GiveBack::Cleared);
    assert_eq!((taken.len(), taken[1].base), (2, 2 * GIB));
    taken.iter().for_each(|it| plan.gone(it.held));
    assert_eq!((plan.reserved_bytes(), plan.idle()), (0, 0));
    for doublings in [0, 1, 2, 3, 3, 3] {
        reserve(&plan);
        assert_eq!(plan.give_back(GiveBack::Short).len(), 2);
        for _ in 0..FEWEST << doublings {
            assert_eq!(plan.request(&mut ask(MIB), Step::Begin), Err(Step::Unserved));
        }
        assert_eq!(plan.request(&mut ask(MIB), Step::Begin), Err(Step::Reserve));
    }
    assert_eq!(plan.counts().1, 6);
}

#[test]
fn regions_of_a_plan_that_is_dropped_go_with_their_last_block() {
    let plan = plan(4);
    reserve(&plan);
    let [first, second] = [(); 2].map(|()| request(&plan).unwrap());
    assert!(plan.uses(second, 7));
    assert_eq!(plan.give_back(GiveBack::ForGood), []);
    assert!(plan.is_dropped());
    assert_eq!(request(&plan), Err(Step::Unserved));
    assert_eq!(free(&plan, first), (false, 1));
    assert_eq!(free(&plan, second), (true, 0));
    plan.recorded(second, &[70]);
    plan.event_over(second);
    plan.done(second);
    assert_eq!(plan.take_dropped().len(), 1);
}

#[test]
fn a_plan_that_is_dropped_while_its_regions_are_taken_keeps_none() {
    for all in [true, false] {
        let plan = plan(5);
        plan.state.lock().wants(0);
        assert!(plan.begin_reserve());
        plan.reserved(0, GIB, 4 * MIB, false);
        assert_eq!(plan.give_back(GiveBack::ForGood), []);
        assert_eq!(plan.end_reserve(all).len(), 1);
        assert!(plan.is_dropped());
    }
}

#[test]
fn what_lies_idle_is_borrowed_for_an_iteration() {
    let plan = plan(6);
    reserve(&plan);
    let long = plan.borrow(&ask(8 * MIB), Step::Peaks).unwrap();
    assert_eq!(long.address, 2 * GIB);
    assert_eq!(plan.counted().0[8].current, 1, "a long block");
    plan.free(long.address).unwrap();
    assert!(plan.request(&mut ask(8 * MIB), Step::Peaks).is_ok());
    plan.give_back(GiveBack::Cleared);
    assert_eq!(plan.request(&mut ask(8 * MIB), Step::Peaks), Err(Step::Unserved), "until the cache is emptied");
}
