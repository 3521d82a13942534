//! empty_cache: which regions it unpins, which pins it stops, and what is pinned again after it.

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
    assert_eq!(pinned(handle), [64], "a pending block keeps its segment too");
    handle.release(live.block);
    handle.empty_cache();
    assert_eq!(pinned(handle), NONE);
    assert_eq!(handle.stats().unwrap().pinned_bytes.current, 0);
}

/// The engine's unit is 4 KiB on every machine.
#[test]
fn regions_are_whole_pages_and_count_as_such_until_they_are_unpinned() {
    for page in [4 << 10, 16 << 10, 64 << 10] {
        let handle = sync(1);
        let memory = numbers(handle);
        memory.page.set(page);
        memory.budget.set(512 * MIB + 5000);
        assert_eq!(handle.pinner.quota().left() % page, 0);
        let odd = 100 * MIB + 4096;
        let grant = handle.request(odd).unwrap();
        settled(handle);
        let regions: Vec<usize> = memory.pinned.lock().unwrap().iter().map(|it| it.bytes).collect();
        assert!(regions.contains(&odd.next_multiple_of(page)), "{regions:?}");
        let sum = regions.iter().sum::<usize>();
        let counted = handle.stats().unwrap().pinned_bytes.current;
        let claimed = || memory.claimed.get();
        assert_eq!((sum % page, counted, claimed()), (0, sum as u64, sum), "{page}");
        assert_eq!(handle.pinner.quota().taken(), sum);
        handle.release(grant.block);
        handle.empty_cache();
        let counted = handle.stats().unwrap().pinned_bytes.current;
        assert_eq!((counted, claimed(), handle.pinner.quota().taken()), (0, 0, 0), "{page}");
    }
}

#[test]
fn what_the_driver_would_not_unpin_is_tried_again_and_counted_until_then() {
    let handle = sync(1);
    let block = handle.request(8 * MIB).unwrap().block;
    handle.release(block);
    let memory = numbers(handle);
    memory.refuses_to_unpin.set(true);
    handle.empty_cache();
    handle.empty_cache();
    let stats = handle.stats().unwrap();
    assert_eq!(stats.pinned_bytes.current, 0, "the engine has it no more");
    assert_eq!(pinned(handle), [64]);
    assert_eq!(memory.claimed.get(), 64 * MIB);
    memory.refuses_to_unpin.set(false);
    handle.empty_cache();
    assert_eq!(pinned(handle), NONE);
    assert_eq!(memory.claimed.get(), 0);
}

#[test]
fn a_clear_stops_a_pin_ahead_and_waits_for_nothing() {
    let handle = ahead(10);
    let endless = pinning_ahead(handle);
    handle.empty_cache();
    settled(handle);
    assert_eq!(numbers(handle).stopped.get(), 1);
    assert_eq!((pinned(handle), deficit(handle)), (vec![], 10));
    drop(endless);
    handle.warm_up(true);
    assert_eq!(pinned(handle), [64; 10]);
}

#[test]
fn what_was_in_the_drivers_hands_at_a_clear_is_unpinned_after_it() {
    let handle = ahead(2);
    numbers(handle).in_the_driver.set(0);
    let endless = pinning_ahead(handle);
    handle.empty_cache();
    assert!(handle.cell.even_if_retired().unwrap().is_pinning(), "it waits for nothing");
    drop(endless);
    settled(handle);
    assert_eq!((asked(handle), pinned(handle)), (vec![64], vec![]));
}

#[test]
fn a_clear_lets_requests_pin_on() {
    let handle = off();
    let served = while_pinning(handle, SEGMENT, &[64], &[&|| handle.request(64 * MIB)], || handle.empty_cache());
    assert!(served[0].is_some());
    assert_eq!(asked(handle), [64]);
}
