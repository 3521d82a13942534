//! What a plan asks for is pinned before the first request, once the program uses a device.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pinbuddy_core::WarmUp;

use super::super::early::next_rest;
use super::planned::{layout, on, planned};
use super::*;

#[test]
fn a_plan_is_pinned_once_there_is_a_context_before_any_request_however_often_the_program_says_so() {
    static CONTEXT: AtomicBool = AtomicBool::new(false);
    for warm_up in [WarmUp::Sync, WarmUp::Background] {
        CONTEXT.store(false, Ordering::Relaxed);
        let handle = on(&layout(), warm_up, 1 << 20);
        for _ in 0..8 {
            handle.warm_up_early(|| CONTEXT.load(Ordering::Relaxed));
        }
        thread::sleep(Duration::from_millis(20));
        assert_eq!(pinned(handle), NONE, "there is no context");
        CONTEXT.store(true, Ordering::Relaxed);
        until("the plan is pinned", || pinned(handle) == [32, 64]);
        assert!(handle.request_planned(0, 32 * MIB).is_some());
        thread::sleep(Duration::from_millis(20));
        assert_eq!(asked_here(handle), [false; 2], "the request pinned nothing");
    }
}

#[test]
fn nothing_is_pinned_early_without_a_plan_or_where_warm_ups_are_off() {
    for handle in [sync(2), ahead(2), off(), on(&layout(), WarmUp::Off, 1 << 20)] {
        handle.warm_up_early(|| panic!("nobody may ask"));
        thread::sleep(Duration::from_millis(5));
        assert_eq!(pinned(handle), NONE);
    }
}

#[test]
fn what_the_program_asks_for_waits_for_its_device_too_with_one_thread() {
    static CONTEXT: AtomicBool = AtomicBool::new(false);
    let handle = ahead(2);
    for _ in 0..3 {
        assert!(handle.warm_up_in_context(false, || CONTEXT.load(Ordering::Relaxed)));
    }
    thread::sleep(Duration::from_millis(20));
    assert_eq!(pinned(handle), NONE, "there is no context");
    CONTEXT.store(true, Ordering::Relaxed);
    until("both are pinned", || pinned(handle).len() == 2);
    let disabled = with(&[("BUDDY_DISABLE", "1")]);
    assert!(!disabled.warm_up_in_context(false, || panic!("nobody may ask")));
}

#[test]
fn the_end_of_the_process_ends_the_wait_for_a_context() {
    static LOOKS: AtomicUsize = AtomicUsize::new(0);
    let handle = planned();
    handle.warm_up_early(|| {
        LOOKS.fetch_add(1, Ordering::Relaxed);
        false
    });
    until("somebody looks", || LOOKS.load(Ordering::Relaxed) > 0);
    handle.close();
    // It may be looking, once.
    thread::sleep(Duration::from_millis(10));
    let looks = LOOKS.load(Ordering::Relaxed);
    thread::sleep(Duration::from_millis(200));
    assert!(LOOKS.load(Ordering::Relaxed) <= looks + 1);
    assert_eq!(pinned(handle), NONE);
}

#[test]
fn where_no_context_comes_looks_are_few_and_come_to_an_end() {
    let (mut waited, mut looks) = (Duration::ZERO, 0);
    while let Some(rest) = next_rest(waited) {
        // What the program waits for the next look is little beside what it has taken.
        assert!(rest <= (waited / 8).max(Duration::from_millis(1)));
        waited += rest;
        looks += 1;
        assert!(looks < 1000, "they do not end");
    }
    assert!(waited >= Duration::from_secs(600));
}
