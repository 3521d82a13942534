//! The end of the process, and its children: their memory is the parent's.

use pinbuddy_core::WarmUp;

use super::super::planned::Planned;
use super::planned::{layout, on, planned, returned};
use super::*;

#[test]
fn the_end_of_the_process_stops_a_requests_pin_and_keeps_its_thread() {
    let own: fn(Tested) -> Option<Grant> = |handle| handle.request(64 * MIB);
    let of_plan: fn(Tested) -> Option<Grant> = |handle| handle.request_planned(0, 32 * MIB);
    for (handle, request, pins) in
        [(off(), own, &[64][..]), (planned(), of_plan, &[64]), (returned(), of_plan, &[64, 32, 64])]
    {
        let _endless = endless(handle, MIB);
        // Not joined: it does not come back before the process is gone.
        let request = thread::spawn(move || request(handle));
        until("it pins", || asked(handle) == pins);
        handle.close();
        assert_eq!(numbers(handle).stopped.get(), 1);
        assert!(!request.is_finished());
        assert_eq!((asked(handle), pinned(handle)), (pins.to_vec(), vec![]));
    }
}

#[test]
fn the_end_of_the_process_waits_for_what_is_in_the_drivers_hands() {
    let handle = ahead(100);
    numbers(handle).in_the_driver.set(0);
    let endless = pinning_ahead(handle);
    thread::scope(|scope| {
        let closing = scope.spawn(|| handle.close());
        until("it is closed", || handle.cell.is_closed());
        assert!(!closing.is_finished());
        drop(endless);
        closing.join().unwrap();
    });
    assert_eq!(asked(handle), [64], "no pin after that");
}

#[test]
fn nothing_is_pinned_after_the_end_and_what_is_there_still_serves() {
    let handle = sync(1);
    let grant = handle.request(8 * MIB).unwrap();
    handle.close();
    assert!(handle.request(8 * MIB).is_some());
    handle.warm_up(true);
    handle.release(grant.block);
    handle.empty_cache();
    assert_eq!(asked(handle), [64]);
}

#[test]
fn a_child_serves_nothing_takes_no_lock_and_leaves_its_parents_blocks_alone() {
    let (own, plans) = (sync(4), planned());
    for (what, handle, live, left) in [
        ("the engine's", own, own.request(8 * MIB), &[64; 4][..]),
        ("a plan's", plans, plans.request_planned(0, 32 * MIB), &[32, 64]),
    ] {
        let live = live.unwrap();
        // As if another thread of the parent held the locks at the fork.
        let held = (handle.cell.even_if_retired().unwrap(), handle.planned.as_ref().map(Planned::hold));
        assert!(handle.enter_child(), "{what}");
        let serve = || (handle.request(8 * MIB), handle.request_planned(0, 32 * MIB));
        assert_eq!(serve(), (None, None), "{what}");
        handle.iteration(0);
        handle.defer(live.block);
        handle.cache(live.block);
        handle.release(live.block);
        assert_eq!(handle.slot_at(live.address), None, "{what}");
        assert!(!handle.is_on() && !handle.warm_up(true) && handle.stats().is_none(), "{what}");
        assert!(!handle.give_way(MIB) && handle.parts().is_empty(), "{what}");
        handle.empty_cache();
        handle.close();
        assert_eq!(handle.report()["state"], "forked", "{what}");
        assert_eq!(pinned(handle), left, "{what}: the pins are the parent's");
        drop(held);
        assert_eq!(serve(), (None, None), "{what}: nor once they are free");
    }
}

/// Before anything is pinned. Such a child ended ten seconds late, and one that asked for memory of a plan waited for ever.
#[test]
fn a_child_made_while_the_driver_starts_waits_for_no_thread_of_its_parent() {
    for handle in [ahead(1), on(&layout(), WarmUp::Background, 1 << 20)] {
        let starting = &numbers(handle).starting;
        starting.set(true);
        handle.warm_up(false);
        assert!(handle.enter_child() && !handle.is_on());
        let begun = Instant::now();
        assert!(!handle.warm_up(true));
        assert_eq!(handle.request_planned(0, 32 * MIB), None);
        handle.close();
        assert!(begun.elapsed() < Duration::from_secs(5));
        starting.set(false);
    }
}

#[test]
fn of_hidden_memory_that_no_tensor_has_nothing_is_said() {
    let handle = sync(1);
    numbers(handle).hides.set(true);
    let cached = handle.request(8 * MIB).unwrap();
    handle.made_child(|| handle.release(cached.block));
    assert!(!handle.notices.has_told_of_children());
}

#[test]
fn a_child_has_the_plan_if_its_parent_pinned_nothing_not_even_what_was_set_aside() {
    let handle = planned();
    assert!(!handle.enter_child());
    assert!(handle.request_planned(0, 32 * MIB).is_some());
    let busy = planned();
    let held = busy.planned.as_ref().unwrap().hold();
    assert!(busy.enter_child(), "a thread of the parent was in it");
    drop(held);
    let served = planned::with(&layout(), WarmUp::Sync, &[]);
    let set_aside = &numbers(served).set_aside;
    set_aside.set(96 * MIB);
    assert!(served.request_planned(0, 32 * MIB).is_some());
    assert_eq!(set_aside.get(), 0, "it pinned nothing else");
    assert!(served.enter_child());
    assert_eq!(served.request_planned(0, 32 * MIB), None);
}
