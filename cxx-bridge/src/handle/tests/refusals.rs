//! Pins that the driver, the budget or the machine refuses, and what is tried instead.

use super::*;

#[test]
fn a_warm_up_that_fails_stops_and_keeps_what_it_pinned() {
    let handle = sync(4);
    numbers(handle).left.set(2);
    assert!(handle.request(60 * MIB).is_some());
    assert_eq!(asked(handle), [64, 64, 64], "the fourth is not tried");
    assert!(handle.request(60 * MIB).is_some());
    assert_eq!(handle.request(60 * MIB), None, "upstream's path, when nothing can be pinned");
    assert_eq!(pinned(handle), [64, 64]);
    assert_eq!(handle.report()["warm_up"]["stopped"], "no more");
    assert!(!is_retired(handle));
}

#[test]
fn a_background_warm_up_that_fails_leaves_requests_to_themselves() {
    let handle = ahead(4);
    numbers(handle).largest.set(32 * MIB);
    handle.request(20 * MIB).unwrap();
    settled(handle);
    assert_eq!(asked(handle), [20, 64]);
    handle.request(30 * MIB).unwrap();
    handle.request(31 * MIB).unwrap();
    settled(handle);
    let segments = || asked(handle).iter().filter(|it| **it == 64).count();
    assert!(pinned(handle).len() == 3 && deficit(handle) == 0);
    let before = segments();
    numbers(handle).largest.set(usize::MAX);
    handle.empty_cache();
    assert_eq!(handle.report()["warm_up"]["stopped"], serde_json::Value::Null);
    assert_eq!(segments(), before, "nothing was unpinned");
    handle.warm_up(true);
    assert_eq!(segments(), before + 2, "who asks for it gets what is missing");
}

#[test]
fn a_long_pin_waits_to_hear_of_other_processes_and_a_short_one_does_not() {
    let handle = with(&[("BUDDY_WARMUP", "off"), ("BUDDY_GROWTH", "exact")]);
    numbers(handle).guessed.set(1024 * MIB);
    numbers(handle).budget.set(100 * MIB);
    assert!(handle.request(20 * MIB).is_some());
    assert_eq!(numbers(handle).guessed.get(), 1024 * MIB);
    assert!(handle.request(84 * MIB).is_none(), "only 80 are this process's");
    assert_eq!((numbers(handle).guessed.get(), pinned(handle)), (0, vec![20]));
}

#[test]
fn completed_events_come_before_anything_else() {
    let handle = sync(1);
    let first = handle.request(60 * MIB).unwrap();
    handle.defer(first.block);
    numbers(handle).left.set(0);
    let completed = (handle, first.block);
    numbers(handle).completed.lock().unwrap().push(completed);
    let again = handle.request(60 * MIB).unwrap();
    assert_eq!(again.address, first.address);
    assert_eq!(pinned(handle), [64]);
}

#[test]
fn then_idle_memory_is_unpinned_for_a_region_of_the_request() {
    let handle = with(&[("BUDDY_WARMUP", "sync"), ("BUDDY_BLOCK_COUNT", "4"), ("BUDDY_MAX_MB", "256")]);
    handle.request(8 * MIB).unwrap();
    assert_eq!(pinned(handle), [64; 4]);
    assert!(handle.request(140 * MIB).is_some());
    assert_eq!(pinned(handle), [64, 140], "three idle ones went, the live one stays");
    assert_eq!(handle.pinner.quota().left(), (256 - 64 - 140) * MIB);
}

#[test]
fn a_request_above_the_budget_is_upstreams_for_which_what_is_idle_makes_way_and_others_are_served() {
    let handle = exact("200");
    let cached = handle.request(100 * MIB).unwrap();
    let _live = handle.request(60 * MIB).unwrap();
    handle.release(cached.block);
    assert_eq!(handle.request(150 * MIB), None);
    assert_eq!(pinned(handle), [60], "upstream pins as much and more");
    assert!(handle.request(60 * MIB).is_some());
    assert_eq!(asked(handle), [100, 60, 60], "the driver is not asked");
    let ahead = with(&[("BUDDY_MAX_MB", "200"), ("BUDDY_BLOCK_COUNT", "2")]);
    assert_eq!(ahead.request(500 * MIB), None);
    settled(ahead);
    assert!(!asked(ahead).contains(&500) && ahead.request(60 * MIB).is_some(), "beside a warm-up");
}

#[test]
fn a_machine_that_has_filled_up_is_left_alone_unless_a_maximum_was_chosen() {
    for (variables, expected) in [(&[][..], false), (&[("BUDDY_MAX_MB", "1000")], true)] {
        let handle = with(variables);
        numbers(handle).room.set(5 * MIB);
        assert_eq!(handle.request(20 * MIB).is_some(), expected);
        settled(handle);
    }
}

#[test]
fn less_than_was_refused_may_be_had_and_the_driver_is_not_asked_twice_for_the_same() {
    let handle = off();
    handle.request(8 * MIB).unwrap();
    numbers(handle).largest.set(8 * MIB);
    assert!(handle.request(8 * MIB).is_some(), "as it is");
    assert_eq!(pinned(handle), [8, 8]);
    let exact = exact("1000");
    numbers(exact).left.set(0);
    assert_eq!((exact.request(8 * MIB), asked(exact)), (None, vec![8]));
}

#[test]
fn a_budget_that_was_decided_in_a_bad_moment_is_decided_again() {
    let handle = off();
    numbers(handle).budget.set(0);
    assert_eq!(handle.request(8 * MIB), None);
    numbers(handle).budget.set(100 * MIB);
    until("it is decided again", || handle.request(8 * MIB).is_some());
    assert_eq!(handle.report()["budget"]["bytes"], 100 * MIB);
}

#[test]
fn pytorchs_own_pin_gets_what_is_idle_and_nothing_where_that_is_not_enough() {
    let (own, plans) = (sync(4), planned::planned());
    for (what, handle, live, free, enough, before) in [
        ("100 and three blocks", own, own.request(8 * MIB), 100, 292, &[64; 4][..]),
        ("10 and what the plan leaves idle", plans, plans.request_planned(0, 32 * MIB), 10, 42, &[32, 64]),
    ] {
        numbers(handle).free.set(free * MIB);
        assert!(!handle.give_way((enough + 1) * MIB), "{what} are less");
        assert_eq!(pinned(handle), before, "{what}");
        assert!(handle.give_way(enough * MIB), "{what}");
        assert_eq!(pinned(handle), [64], "{what}: the other has a live block");
        assert!(!handle.give_way(MIB), "{what}: there is nothing more");
        handle.release(live.unwrap().block);
        assert!(!is_retired(handle), "{what}");
    }
}
