//! Requests, the regions that are pinned for them, and the reports about them.

use pinbuddy_core::Region;

use super::*;

#[test]
fn below_the_threshold_nothing_is_served_and_nothing_pinned() {
    let handle = sync(4);
    assert_eq!(handle.request(4 * MIB - 1), None);
    assert_eq!(pinned(handle), NONE);
    assert!(handle.request(4 * MIB).is_some());
}

#[test]
fn nothing_fits_and_at_least_the_request_is_pinned() {
    let handle = off();
    for mib in [60, 60, 4, 20, 50, 7, 33] {
        let grant = handle.request(mib * MIB).unwrap();
        assert!(grant.block.bytes >= mib * MIB);
        let regions = numbers(handle).pinned.lock().unwrap();
        let (from, to) = (grant.address, grant.address + mib * MIB);
        let inside = |it: &Region| it.base <= from && to <= it.base + it.bytes;
        assert!(regions.iter().any(inside), "it lies in what is pinned");
    }
    assert!(pinned(handle).iter().all(|mib| *mib <= 64));
}

#[test]
fn nothing_fits_and_exactly_the_request_is_pinned_where_that_is_asked_for() {
    let handle = exact("1000");
    handle.request(5 * MIB).unwrap();
    let grant = handle.request(33 * MIB + 1).unwrap();
    assert_eq!(pinned(handle), [5, 33], "and a granule");
    handle.release(grant.block);
    handle.request(20 * MIB).unwrap();
    assert_eq!(
        pinned(handle),
        [5, 33],
        "such a region is split as any other"
    );
}

#[test]
fn beside_cached_blocks_nothing_is_pinned_and_no_idle_segment_is_cut() {
    let handle = sync(2);
    assert_eq!(request_beside(handle, 8, 0), None);
    let first = handle.request(8 * MIB).unwrap();
    // The user frees it, and it is cached.
    let second = request_beside(handle, 40, 8).unwrap();
    assert_eq!(second.block.segment, first.block.segment);
    assert_eq!(request_beside(handle, 40, 8), None);
    let stats = handle.stats().unwrap();
    assert_eq!(stats.active_bytes.peak, 48 * MIB as u64);
    assert_eq!((stats.hits, stats.misses), (2, 1));
    assert_eq!(pinned(handle), [64, 64]);
}

#[test]
fn a_block_is_cached_once_its_events_are_complete() {
    let handle = sync(1);
    let grant = handle.request(8 * MIB).unwrap();
    handle.defer(grant.block);
    handle.cache(grant.block);
    handle.reused(2, 16 * MIB);
    handle.release(grant.block);
    let stats = handle.stats().unwrap();
    assert_eq!((stats.hits, stats.active_blocks.allocated), (3, 3));
    assert_eq!(stats.active_bytes.allocated, 24 * MIB as u64);
    assert_eq!(stats.active_bytes.freed, 24 * MIB as u64);
    assert_eq!(stats.pending_blocks.current, 0);
    assert!(handle.is_on());
    let live = handle.request(8 * MIB).unwrap();
    handle.cache(live.block);
    assert!(is_retired(handle), "it was not pending");
}

#[test]
fn every_pinned_byte_is_in_one_part() {
    let handle = sync(2);
    let first = handle.request(8 * MIB).unwrap();
    let freed = handle.request(16 * MIB).unwrap();
    let last = handle.request(8 * MIB).unwrap();
    handle.defer(freed.block);
    handle.release(first.block);
    let parts = handle.parts();
    let sum = |which: fn(&crate::ffi::Part) -> bool| -> usize {
        parts.iter().filter(|it| which(it)).map(|it| it.bytes).sum()
    };
    assert_eq!(sum(|it| it.live), 8 * MIB);
    assert_eq!(sum(|it| it.pending), 16 * MIB);
    assert_eq!(sum(|_| true), 2 * SEGMENT);
    let live = parts.iter().find(|it| it.live).unwrap();
    assert_eq!(live.address, last.address);
}

#[test]
fn the_report_is_what_people_read() {
    let handle = sync(1);
    let kept = handle.request(8 * MIB).unwrap();
    let freed = handle.request(16 * MIB).unwrap();
    handle.defer(freed.block);
    insta::assert_snapshot!(serde_json::to_string_pretty(&handle.report()).unwrap());
    insta::assert_snapshot!(
        "segments",
        serde_json::to_string_pretty(&handle.segments()).unwrap()
    );
    assert_eq!(
        handle.state_line(),
        "pinbuddy: 64 MiB pinned (8 MiB live, 16 MiB pending, 40 MiB idle, the longest free run \
         40 MiB); segments: 1; budget: 1048576 GiB, as the test has it; warm-up: done"
    );
    handle.release(kept.block);
    handle.release(freed.block);
}
