//! A defect of our own: the engine retires, and nothing worse happens.

use pinbuddy_core::Block;

use super::*;

#[test]
fn a_panic_retires_the_engine_goes_no_further_and_leaves_live_blocks_alone() {
    let (pins, locks, plans) = (sync(1), sync(1), planned::planned());
    for (what, handle, live, break_it, left) in [
        ("in a pin", pins, pins.request(8 * MIB), break_a_pin as fn(Tested, Block), &[64][..]),
        ("under the lock", locks, locks.request(8 * MIB), |handle, _| handle.break_down(), &[64]),
        ("in what is planned", plans, plans.request_planned(0, 32 * MIB), break_the_plan, &[32, 64]),
    ] {
        let live = live.unwrap();
        break_it(handle, live.block);
        assert_eq!(handle.request(8 * MIB), None, "{what}: everything is upstream's now");
        assert_eq!(handle.request_planned(0, 32 * MIB), None, "{what}");
        assert!(is_retired(handle), "{what}");
        handle.defer(live.block);
        handle.release(live.block);
        handle.empty_cache();
        assert_eq!(pinned(handle), left, "{what}: a live block's memory is never unpinned after that");
        assert!(!handle.is_on() && !handle.warm_up(true), "{what}");
        assert_eq!(handle.state_line(), "pinbuddy: the engine is retired", "{what}");
        assert!(handle.counters(|| live::NOTHING).retired, "{what}");
        assert!(handle.stats().is_none() && handle.parts().is_empty(), "{what}");
    }
}

fn break_a_pin(handle: Tested, _: Block) {
    numbers(handle).panics.set(true);
    assert_eq!(handle.request(100 * MIB), None);
    assert!(is_retired(handle));
}

fn break_the_plan(handle: Tested, live: Block) {
    let no_slot = Block { offset: 1 << 20, ..live };
    handle.defer(no_slot);
    assert!(is_retired(handle));
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
