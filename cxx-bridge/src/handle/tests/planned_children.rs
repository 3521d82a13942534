//! A plan in a child of the process that has it: the memory is the parent's.

use pinbuddy_core::WarmUp;

use super::planned::{layout, planned, with};
use super::*;

#[test]
fn a_child_of_a_parent_with_memory_that_was_set_aside_has_none_of_it() {
    let handle = with(&layout(), WarmUp::Sync, &[]);
    let set_aside = &numbers(handle).set_aside;
    set_aside.set(96 * MIB);
    assert!(handle.request_planned(0, 32 * MIB).is_some());
    assert_eq!(set_aside.get(), 0, "it pinned nothing else");
    assert!(handle.enter_child());
    assert_eq!(handle.request_planned(0, 32 * MIB), None);
}

#[test]
fn a_child_of_a_parent_that_pinned_nothing_has_the_plan() {
    let handle = planned();
    assert!(!handle.enter_child());
    assert!(handle.request_planned(0, 32 * MIB).is_some());
    let busy = planned();
    let held = busy.planned.as_ref().unwrap().hold();
    assert!(busy.enter_child(), "a thread of the parent was in it");
    drop(held);
}
