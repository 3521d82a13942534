//! A program that does not do as its plan says any more.

use pinbuddy_core::WarmUp;

use super::planned::{beside, layout, planned};
use super::*;
use std::sync::atomic::Ordering;

#[test]
fn a_plan_that_does_not_fit_any_more_is_counted_and_said_once() {
    let handle = planned();
    let plan = |what: &str| handle.report()["plan"][what].as_u64().unwrap();
    let round = |sizes: &[usize]| {
        for mib in sizes {
            if let Some(grant) = handle.request_planned(0, mib * MIB) {
                handle.release(grant.block);
            }
        }
    };
    round(&[32, 32, 16, 16]);
    for _ in 0..400 {
        round(&[7, 9, 11]);
    }
    assert_eq!(plan("drift"), 1);
    let planned = handle.planned.as_ref().unwrap();
    let said = || planned.given_up().load(Ordering::Relaxed);
    assert_eq!((plan("given_up"), said()), (0, false), "a phase");
    for _ in 0..1000 {
        round(&[7, 9, 11]);
    }
    assert_eq!((plan("given_up"), said()), (1, true));
    for _ in 0..5 {
        round(&[32, 32, 16, 16]);
    }
    let hits = plan("hits");
    round(&[32, 32, 16, 16]);
    assert_eq!(plan("hits") - hits, 4, "it fits again");
}

#[test]
fn what_the_plans_room_holds_beside_the_slots_is_no_misfit() {
    for (regions, live, is_said) in [(0, 1, true), (1, 1, false), (1, 3, true)] {
        let handle = beside(regions, &layout(), WarmUp::Sync, &[]);
        let blocks: Vec<_> = (0..live).map(|_| handle.request(600 * MIB)).collect();
        assert!(blocks.iter().all(Option::is_some));
        for _ in 0..100 {
            assert!(handle.request_planned(0, 7 * MIB).is_none());
        }
        handle.say_misfit_at_the_end();
        let planned = handle.planned.as_ref().unwrap();
        assert_eq!(planned.is_misfit(), is_said, "{live} beside {regions} regions of the engine's");
    }
}
