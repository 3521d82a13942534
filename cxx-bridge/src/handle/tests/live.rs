//! What the live page says of a handle.

use pinbuddy_live::{Budget, Counters};

use super::*;
use crate::ffi::Caches;

pub(super) const NOTHING: Caches = Caches { bytes: 0, served: 0 };

fn counters(handle: Tested) -> Counters {
    handle.counters(|| NOTHING)
}

#[test]
fn a_page_says_what_the_statistics_say() {
    let handle = exact("1000");
    assert_eq!(counters(handle), Counters::default(), "and decides nothing");
    let (one, two) = (handle.request(8 * MIB).unwrap(), handle.request(8 * MIB).unwrap());
    handle.defer(one.block);
    let now = counters(handle);
    let mib = MIB as u64;
    assert_eq!((now.pinned, now.live, now.pending), (16 * mib, 8 * mib, 8 * mib));
    assert_eq!((now.served, now.misses, now.segments), (2, 2, 2));
    assert_eq!(now.budget, Budget::Bytes(1000 * mib));
    handle.release(two.block);
    assert_eq!((counters(handle).live, counters(handle).peak_pinned), (0, 16 * mib));
    handle.release(one.block);
    handle.request(8 * MIB).unwrap();
    let cached = |bytes, served| handle.counters(|| Caches { bytes, served });
    let now = cached(8 * mib, 5);
    assert_eq!(
        (now.pinned, now.live, now.served),
        (16 * mib, 0, 8),
        "cached blocks are idle, and what they served counts"
    );
    // Caches change while they are read.
    let now = cached(u64::MAX, 0);
    assert_eq!((now.live, now.pending), (0, 0));
}

#[test]
fn only_requests_that_wait_count_and_for_as_long() {
    let handle = exact("1000");
    let grant = handle.request(8 * MIB).unwrap();
    let first = counters(handle);
    assert_eq!(first.waits, 1);
    handle.release(grant.block);
    handle.request(8 * MIB).unwrap();
    assert_eq!((counters(handle).waits, counters(handle).waited), (1, first.waited), "a hit");
    let endless = endless(handle, MIB);
    thread::scope(|scope| {
        let request = scope.spawn(|| handle.request(4 * MIB));
        thread::sleep(Duration::from_millis(30));
        drop(endless);
        request.join().unwrap().unwrap();
    });
    let then = counters(handle);
    assert_eq!(then.waits, 2);
    assert!(then.waited - first.waited >= 20_000_000, "{}", then.waited - first.waited);
}

#[test]
fn the_allocator_hears_of_waits_for_pins_and_unpins_of_the_programs_threads() {
    let handle = exact("1000");
    let heard = || {
        let memory = numbers(handle);
        let ended = memory.waits_ended.get();
        assert_eq!(memory.waits_begun.get(), ended);
        ended
    };
    handle.empty_cache();
    assert_eq!(heard(), 0, "there is nothing to unpin");
    let grant = handle.request(8 * MIB).unwrap();
    assert_eq!(heard(), 1, "a pin");
    handle.release(grant.block);
    let grant = handle.request(8 * MIB).unwrap();
    assert_eq!(heard(), 1, "a hit");
    handle.release(grant.block);
    handle.empty_cache();
    assert_eq!(heard(), 2, "an unpin");
    let requests = &numbers(handle).requests_waited;
    assert_eq!(requests.get(), 1);
    let ahead = ahead(2);
    ahead.warm_up(true);
    assert_eq!(ahead.stats().unwrap().segments.current, 2);
    let grant = ahead.request(4 * MIB).unwrap();
    ahead.release(grant.block);
    let begun = &ahead.pinner.memory.waits_begun;
    assert_eq!(begun.get(), 0, "the worker pinned");
}

#[test]
fn a_plan_counts_what_it_serves_and_what_it_does_not() {
    let handle = planned::planned();
    let mib = MIB as u64;
    for it in [32, 32, 16, 16] {
        handle.request_planned(0, it * MIB).unwrap();
    }
    let now = counters(handle);
    assert_eq!((now.planned, now.unplanned, now.served, now.waits), (4, 0, 4, 1));
    assert_eq!((now.pinned, now.live), (96 * mib, 96 * mib));
    assert!(handle.request_planned(0, 32 * MIB).is_none());
    assert_eq!(counters(handle).unplanned, 1);
}
