//! The warm-up in each mode, who waits for it, and its end.

use super::*;

#[test]
fn in_sync_the_first_request_pins_all_and_no_later_one_any() {
    let handle = sync(4);
    assert_eq!(
        pinned(handle),
        NONE,
        "nothing is pinned before it is needed"
    );
    let first = handle.request(5 * MIB).unwrap();
    assert_eq!(pinned(handle), [64; 4]);
    for _ in 0..100 {
        let grant = handle.request(50 * MIB).unwrap();
        handle.release(grant.block);
    }
    assert_eq!(pinned(handle), [64; 4]);
    handle.release(first.block);
}

#[test]
fn in_the_background_the_first_request_pins_only_its_own() {
    let handle = with(&[]);
    handle.backing.slowness.store(30, Ordering::Relaxed);
    let first = handle.request(5 * MIB).unwrap();
    assert_eq!(
        asked(handle)[0],
        5,
        "before the warm-up competes for the driver"
    );
    handle.warm_up.wait_until_over();
    assert_eq!(asked(handle), [5, 64, 64, 64, 64]);
    let here = thread::current().id();
    let asked = handle.backing.asked.lock().unwrap().clone();
    assert_eq!(asked[0].1, here);
    assert!(asked[1..].iter().all(|(_, thread)| *thread != here));
    handle.release(first.block);
    assert_eq!(handle.report()["warm_up"]["phase"], "done");
}

#[test]
fn each_segment_serves_as_soon_as_it_is_pinned() {
    let handle = with(&[("BUDDY_BLOCK_COUNT", "20")]);
    handle.backing.slowness.store(50, Ordering::Relaxed);
    handle.warm_up(false);
    handle.warm_up.wait(0);
    assert!(handle.request(60 * MIB).is_some());
    assert!(
        pinned(handle).len() < 20,
        "the warm-up still goes on: {:?}",
        pinned(handle)
    );
    assert!(!asked(handle).contains(&60));
}

#[test]
fn a_request_is_pinned_by_itself_where_that_is_much_faster() {
    let handle = with(&[("BUDDY_BLOCK_COUNT", "3")]);
    handle.backing.slowness.store(400, Ordering::Relaxed);
    handle.warm_up(false);
    while asked(handle).is_empty() {
        thread::yield_now();
    }
    handle.request(4 * MIB).unwrap();
    assert_eq!(asked(handle), [64, 4], "its own takes a sixteenth");
    handle.request(40 * MIB).unwrap();
    handle.warm_up.wait_until_over();
    assert_eq!(
        asked(handle),
        [64, 4, 64, 64],
        "more than a quarter is waited for"
    );
}

#[test]
fn where_the_driver_pins_one_region_at_a_time_requests_wait_for_one_segment() {
    let handle = with(&[("BUDDY_BLOCK_COUNT", "6")]);
    handle.backing.slowness.store(500, Ordering::Relaxed);
    handle.backing.one_at_a_time.store(true, Ordering::Relaxed);
    handle.warm_up(false);
    handle.warm_up.wait(0);
    let mut kept = vec![handle.request(64 * MIB).unwrap()];
    while asked(handle).len() < 2 {
        thread::yield_now();
    }
    kept.push(handle.request(4 * MIB).unwrap());
    assert_eq!(
        asked(handle)[..3],
        [64, 64, 4],
        "it does not know yet; but no second segment comes first"
    );
    handle.warm_up.wait(handle.warm_up.brought());
    kept.push(handle.request(64 * MIB).unwrap());
    kept.push(handle.request(4 * MIB).unwrap());
    let fours = asked(handle).iter().filter(|it| **it == 4).count();
    assert_eq!(fours, 1, "and then it does: {:?}", asked(handle));
}

#[test]
fn threads_that_arrive_together_share_one_warm_up_and_never_a_block() {
    let handle = sync(4);
    let grants = thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| handle.request(15 * MIB).unwrap()))
            .collect();
        threads
            .into_iter()
            .map(|it| it.join().unwrap())
            .collect::<Vec<_>>()
    });
    let mut spans: Vec<_> = grants
        .iter()
        .map(|it| (it.address, it.block.bytes))
        .collect();
    spans.sort_unstable();
    assert!(
        spans
            .windows(2)
            .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0),
        "{spans:?}"
    );
    assert_eq!(handle.warm_up.progress().pinned, 4);
}

#[test]
fn threads_that_find_no_room_together_grow_once() {
    let handle = off();
    handle.backing.slowness.store(50, Ordering::Relaxed);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| handle.request(8 * MIB).unwrap());
        }
    });
    assert_eq!(pinned(handle), [64], "eight of 8 MiB fit in one");
}

#[test]
fn when_off_nothing_is_pinned_ahead_unless_asked_for() {
    let handle = off();
    handle.request(8 * MIB).unwrap();
    assert_eq!(pinned(handle), [64]);
    assert!(handle.warm_up(true));
    assert_eq!(pinned(handle), [64; 5]);
    assert!(handle.warm_up(true), "a second time there is nothing to do");
    assert_eq!(pinned(handle), [64; 5]);
}

#[test]
fn a_warm_up_shrinks_to_the_budget() {
    let handle = with(&[("BUDDY_WARMUP", "sync"), ("BUDDY_MAX_MB", "150")]);
    handle.request(8 * MIB).unwrap();
    assert_eq!(pinned(handle), [64, 64]);
    assert_eq!(handle.purse().left(), 22 * MIB);
    let progress = handle.warm_up.progress();
    assert_eq!(
        (progress.phase, progress.pinned, progress.owed),
        ("done", 2, 0)
    );
}

#[test]
fn what_is_set_aside_is_used_first_and_is_no_part_of_the_budget() {
    let handle = sync(4);
    let left = handle.purse().left();
    handle.backing.set_aside.store(160 * MIB, Ordering::Relaxed);
    let first = handle.request(8 * MIB).unwrap();
    assert_eq!(pinned(handle), [64; 4]);
    assert_eq!(asked(handle), [64; 2], "of ordinary memory");
    assert_eq!(left - handle.purse().left(), 128 * MIB);
    handle.release(first.block);
    handle.empty_cache();
    assert_eq!(handle.purse().left(), left);
    assert_eq!(handle.backing.set_aside(MIB), 160 * MIB);
}

#[test]
fn a_limit_that_was_chosen_counts_what_is_set_aside() {
    let handle = with(&[("BUDDY_WARMUP", "sync"), ("BUDDY_MAX_MB", "150")]);
    handle.backing.set_aside.store(1 << 30, Ordering::Relaxed);
    handle.request(8 * MIB).unwrap();
    assert_eq!(pinned(handle), [64, 64]);
}

#[test]
fn the_end_of_the_process_waits_for_the_pin_that_goes_on_and_no_longer() {
    let handle = with(&[("BUDDY_BLOCK_COUNT", "100")]);
    handle.backing.slowness.store(100, Ordering::Relaxed);
    handle.warm_up(false);
    handle.warm_up.wait(0);
    handle.close();
    let pinned_at_the_end = asked(handle).len();
    thread::sleep(Duration::from_millis(250));
    assert_eq!(asked(handle).len(), pinned_at_the_end, "no pin after that");
    assert!(pinned_at_the_end < 20);
}

#[test]
fn what_requests_pin_by_themselves_meanwhile_is_a_part_of_the_warm_up() {
    let handle = with(&[("BUDDY_BLOCK_COUNT", "6")]);
    handle.backing.slowness.store(400, Ordering::Relaxed);
    handle.warm_up(false);
    while asked(handle).is_empty() {
        thread::yield_now();
    }
    let kept: Vec<_> = (0..10).map(|_| handle.request(7 * MIB).unwrap()).collect();
    handle.backing.slowness.store(0, Ordering::Relaxed);
    handle.warm_up.wait_until_over();
    let own: usize = asked(handle).iter().filter(|it| **it < 64).sum();
    let segments = asked(handle).iter().filter(|it| **it == 64).count();
    assert_eq!(segments, 6 - own / 64, "{:?}", asked(handle));
    assert_eq!(kept.len(), 10);
}
