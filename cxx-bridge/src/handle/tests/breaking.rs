//! A defect of our own: the engine retires, and nothing worse happens.

use pinbuddy_core::Block;

use super::*;

#[test]
fn a_panic_retires_the_engine_and_goes_no_further() {
    let handle = sync(1);
    let live = handle.request(8 * MIB).unwrap();
    numbers(handle).panics.set(true);
    assert_eq!(handle.request(100 * MIB), None);
    assert!(is_retired(handle));
    assert_eq!(handle.request(8 * MIB), None, "everything is upstream's now");
    handle.release(live.block);
    handle.empty_cache();
    assert_eq!(pinned(handle), [64], "a live block's memory is never unpinned after that");
    assert!(!handle.is_on() && !handle.warm_up(true));
    assert_eq!(handle.state_line(), "pinbuddy: the engine is retired");
    assert!(handle.counters(|| live::NOTHING).retired);
}

#[test]
fn a_panic_under_the_lock_leaves_live_blocks_alone() {
    let handle = sync(1);
    let live = handle.request(8 * MIB).unwrap();
    handle.break_down();
    assert_eq!(handle.request(8 * MIB), None);
    assert!(is_retired(handle));
    handle.defer(live.block);
    handle.release(live.block);
    handle.empty_cache();
    assert_eq!(pinned(handle), [64]);
    assert!(handle.stats().is_none() && handle.parts().is_empty());
}

#[test]
fn a_panic_in_what_is_planned_retires_the_engine_too() {
    let handle = planned::planned();
    let live = handle.request_planned(0, 32 * MIB).unwrap();
    let no_slot = Block { offset: 1 << 20, ..live.block };
    handle.defer(no_slot);
    assert!(is_retired(handle));
    assert_eq!(handle.request_planned(0, 32 * MIB), None);
    handle.release(live.block);
    handle.empty_cache();
    assert_eq!(pinned(handle), [32, 64]);
}

#[test]
fn a_panic_in_the_background_retires_the_engine_too() {
    let handle = with(&[]);
    numbers(handle).panics.set(true);
    handle.warm_up(true);
    assert!(is_retired(handle));
    settled(handle);
    handle.close();
}

#[test]
fn a_pin_that_panics_retires_the_engine_and_is_not_waited_for() {
    let (own, plans) = (sync(2), planned::planned());
    for (handle, request) in [
        (own, &(|| own.request(8 * MIB)) as &(dyn Fn() -> Option<Grant> + Sync)),
        (plans, &|| plans.request_planned(0, 32 * MIB)),
    ] {
        let both = while_pinning(handle, 0, &[64], &[request, request], || numbers(handle).panics.set(true));
        assert_eq!(both, [None, None]);
        assert!(is_retired(handle));
        settled(handle);
        handle.close();
    }
}

#[test]
fn what_is_pinned_when_misuse_retires_the_engine_is_unpinned() {
    let handle = off();
    let grant = handle.request(8 * MIB).unwrap();
    let served = while_pinning(handle, 20 * MIB, &[8, 100], &[&|| handle.request(100 * MIB)], || {
        handle.release(grant.block);
        handle.release(grant.block);
        assert!(is_retired(handle));
    });
    assert_eq!(served, [None]);
    settled(handle);
    assert_eq!(pinned(handle), [8], "what the engine had stays");
}
