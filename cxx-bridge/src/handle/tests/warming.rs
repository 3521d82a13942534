//! What is pinned ahead of requests in each mode, by which thread, and when that ends.

use super::*;
use crate::backing::Memory;

#[test]
fn in_sync_the_first_request_pins_all_and_no_later_one_any() {
    let handle = sync(4);
    assert_eq!(pinned(handle), NONE, "nothing is pinned before it is needed");
    handle.request(5 * MIB).unwrap();
    assert_eq!(pinned(handle), [64; 4]);
    for _ in 0..100 {
        let grant = handle.request(50 * MIB).unwrap();
        handle.release(grant.block);
    }
    assert_eq!(pinned(handle), [64; 4]);
}

#[test]
fn without_a_count_there_are_eight_by_the_requests_thread_in_sync_or_by_the_worker_if_asked_for() {
    let (in_sync, asked_for) = (with(&[("BUDDY_WARMUP", "sync")]), with(&[]));
    assert!(in_sync.request(5 * MIB).is_some() && asked_for.warm_up(true));
    for (handle, is_here) in [(in_sync, true), (asked_for, false)] {
        assert_eq!(pinned(handle), [64; 8]);
        assert_eq!(asked_here(handle), [is_here; 8]);
    }
}

#[test]
fn the_driver_starts_at_the_programs_own_priority() {
    let handle = ahead(2);
    assert!(handle.warm_up(false));
    settled(handle);
    let (started, pins) = (&numbers(handle).started, &numbers(handle).pins);
    assert_eq!(started.get(), numbers::niceness());
    assert!(pins.get() > numbers::niceness());
}

#[test]
fn in_the_background_requests_pin_only_their_own_and_the_worker_as_many_as_were_asked_for() {
    let handle = ahead(4);
    handle.request(5 * MIB).unwrap();
    settled(handle);
    assert_eq!(asked(handle)[..4], [5, 64, 64, 64]);
    let here = asked_here(handle);
    assert!(here[0] && !here[1..].contains(&true), "{here:?}");
    let none = ahead(0);
    for mib in [5, 6, 7, 8, 60] {
        none.request(mib * MIB).unwrap();
        settled(none);
    }
    assert!(!asked_here(none).contains(&false));
}

#[test]
fn each_segment_serves_as_soon_as_it_is_pinned() {
    let handle = ahead(2);
    numbers(handle).left.set(1);
    handle.warm_up(true);
    let grant = handle.request(60 * MIB).unwrap();
    assert_eq!(grant.block.bytes, 60 * MIB);
    assert_eq!(asked(handle), [64, 64], "and not one of its own");
}

#[test]
fn when_off_nothing_is_pinned_ahead_unless_asked_for() {
    let handle = with(&[("BUDDY_WARMUP", "off"), ("BUDDY_BLOCK_COUNT", "4")]);
    handle.request(8 * MIB).unwrap();
    settled(handle);
    assert_eq!(pinned(handle), [8]);
    assert!(handle.warm_up(true));
    let all = pinned(handle);
    assert!(all.len() >= 4 && all[1..].iter().all(|mib| *mib == 64));
    assert!(handle.warm_up(true), "a second time there is nothing to do");
    assert_eq!(pinned(handle), all);
}

#[test]
fn who_waits_for_a_warm_up_that_goes_on_waits_for_that_one() {
    let handle = ahead(3);
    let endless = pinning_ahead(handle);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| handle.warm_up(true));
        drop(endless);
        assert!(waiting.join().unwrap());
        assert_eq!(pinned(handle), [64; 3]);
    });
}

#[test]
fn a_warm_up_shrinks_to_the_budget_which_counts_what_is_set_aside_if_it_was_chosen() {
    for (set_aside, count) in [(0, ""), (1 << 30, "3")] {
        let handle = with(&[("BUDDY_WARMUP", "sync"), ("BUDDY_MAX_MB", "150"), ("BUDDY_BLOCK_COUNT", count)]);
        numbers(handle).set_aside.set(set_aside);
        handle.request(8 * MIB).unwrap();
        assert_eq!(pinned(handle), [64, 64], "{set_aside} bytes are set aside");
        assert_eq!(handle.pinner.quota().left(), 22 * MIB);
        let progress = handle.progress().unwrap();
        assert_eq!((progress.phase, progress.pinned, progress.deficit), ("done", 2, 0));
        assert_eq!(handle.notices.has_shrunk(), !count.is_empty(), "a number that nobody set is no promise");
    }
}

#[test]
fn what_is_set_aside_is_used_first_is_no_part_of_the_budget_and_no_other_process_is_told_of_it() {
    let handle = sync(4);
    let (world, left) = (numbers(handle), handle.pinner.quota().left());
    world.set_aside.set(160 * MIB);
    let first = handle.request(8 * MIB).unwrap();
    assert_eq!(pinned(handle), [64; 4]);
    assert_eq!(asked(handle), [64; 2], "of ordinary memory");
    assert_eq!((left - handle.pinner.quota().left(), world.claimed.get()), (128 * MIB, 128 * MIB));
    handle.release(first.block);
    handle.empty_cache();
    assert_eq!((handle.pinner.quota().left(), world.claimed.get()), (left, 0));
    assert_eq!(world.set_aside(MIB), 160 * MIB);
    let handle = off();
    numbers(handle).budget.set(0);
    numbers(handle).set_aside.set(128 * MIB);
    assert!(handle.request(60 * MIB).is_some(), "there is no other budget");
    assert_eq!((asked(handle), handle.request(129 * MIB)), (vec![], None));
}

#[test]
fn other_processes_are_told_of_a_pin_while_it_goes_on_and_not_if_it_is_refused() {
    let handle = off();
    let world = numbers(handle);
    assert!(handle.request(64 * MIB).is_some());
    assert_eq!((world.claimed.get(), world.claimed_meanwhile.get()), (64 * MIB, 1));
    world.left.set(0);
    assert!(handle.request(64 * MIB).is_none());
    assert_eq!(world.claimed.get(), 64 * MIB);
}
