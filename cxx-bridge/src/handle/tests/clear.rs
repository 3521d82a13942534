//! empty_cache, and the re-warm after it.

use super::*;

#[test]
fn only_wholly_idle_segments_and_cached_regions_go() {
    let handle = sync(3);
    let live = handle.request(8 * MIB).unwrap();
    let large = handle.request(100 * MIB).unwrap();
    handle.empty_cache();
    assert_eq!(pinned(handle).len(), 2, "each with a live block");
    handle.release(large.block);
    handle.defer(live.block);
    handle.empty_cache();
    assert_eq!(
        pinned(handle),
        [64],
        "a pending block keeps its segment too"
    );
    handle.release(live.block);
    handle.empty_cache();
    assert_eq!(pinned(handle), NONE);
    assert_eq!(handle.stats().unwrap().pinned_bytes.current, 0);
}

#[test]
fn the_first_request_that_finds_no_room_warms_up_again() {
    let handle = sync(3);
    let live = handle.request(8 * MIB).unwrap();
    handle.empty_cache();
    assert_eq!(pinned(handle), [64]);
    handle.request(50 * MIB).unwrap();
    assert_eq!(pinned(handle), [64], "there is room still");
    handle.request(50 * MIB).unwrap();
    assert_eq!(pinned(handle), [64; 3], "as many as were given back");
    handle.release(live.block);
}

#[test]
fn in_the_background_the_re_warm_is_behind_the_request() {
    let handle = with(&[]);
    assert!(handle.warm_up(true));
    handle.empty_cache();
    assert_eq!(pinned(handle), NONE);
    let grant = handle.request(10 * MIB).unwrap();
    assert_eq!(pinned(handle)[0], 10);
    handle.warm_up.wait_until_over();
    assert_eq!(pinned(handle), [10, 64, 64, 64, 64]);
    handle.release(grant.block);
}

#[test]
fn who_wants_no_blocks_ahead_gets_none_later_either() {
    for handle in [off(), sync(0)] {
        let grants = [(); 3].map(|()| handle.request(60 * MIB).unwrap());
        for grant in grants {
            handle.release(grant.block);
        }
        handle.empty_cache();
        handle.request(60 * MIB).unwrap();
        assert_eq!(pinned(handle), [64]);
    }
}

#[test]
fn what_grew_is_remembered_as_well_and_cached_regions_are_not() {
    let handle = sync(1);
    let grants: Vec<_> = (0..3).map(|_| handle.request(60 * MIB).unwrap()).collect();
    let large = handle.request(300 * MIB).unwrap();
    for grant in grants.iter().chain([&large]) {
        handle.release(grant.block);
    }
    handle.empty_cache();
    handle.request(60 * MIB).unwrap();
    assert_eq!(pinned(handle), [64; 3]);
}

#[test]
fn clearing_ends_a_warm_up_that_is_under_way_and_keeps_the_rest_owed() {
    let handle = with(&[("BUDDY_BLOCK_COUNT", "10")]);
    handle.backing.slowness.store(50, Ordering::Relaxed);
    handle.warm_up(false);
    handle.warm_up.wait(0);
    handle.empty_cache();
    handle.warm_up.wait_until_over();
    assert_eq!(pinned(handle), NONE, "what was being pinned went as well");
    assert_eq!(handle.warm_up.progress().owed, 10);
    handle.backing.slowness.store(0, Ordering::Relaxed);
    handle.request(60 * MIB).unwrap();
    handle.warm_up.wait_until_over();
    assert_eq!(pinned(handle).len(), 11);
}

#[test]
fn sizes_above_a_segment_that_vary_from_step_to_step_do_not_pile_up() {
    let handle = off();
    let mut asked_before = 0;
    for step in 0..200 {
        // 66 to 264 MiB, in an order that does not repeat soon.
        let mib = 66 + (step * 71) % 199;
        let grant = handle.request(mib * MIB).unwrap();
        handle.release(grant.block);
        if step == 99 {
            asked_before = asked(handle).len();
        }
    }
    let total: usize = pinned(handle).iter().sum();
    assert!(total <= 8 * 264, "{total} MiB for one request at a time");
    assert!(
        asked(handle).len() - asked_before <= 2,
        "{:?}",
        asked(handle)
    );
}
