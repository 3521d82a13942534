//! The budget of memory that is pinned in place, and children of a process that pins so.

use super::*;

#[test]
fn memory_that_is_not_there_yet_needs_room_and_a_refusal_unpins_nothing() {
    let handle = sync(2);
    let grant = handle.request(8 * MIB).unwrap();
    handle.release(grant.block);
    let numbers = handle.pinner.memory;
    let claimed = || numbers.claimed.load(Ordering::Relaxed);
    let (before, idle) = (claimed(), pinned(handle));
    numbers.room.store(MIB, Ordering::Relaxed);
    handle.take_in_place(5 * MIB, MIB).unwrap();
    assert_eq!(claimed(), before + 5 * MIB);
    let why = handle.take_in_place(5 * MIB, 2 * MIB).unwrap_err();
    assert!(why.contains("pinbuddy.empty_cache()"), "{why}");
    assert!(why.contains("what the machine has left"), "{why}");
    let why = handle.take_in_place(usize::MAX / 2, 0).unwrap_err();
    assert!(why.contains("the budget is used up"), "{why}");
    assert_eq!((claimed(), pinned(handle)), (before + 5 * MIB, idle));
    handle.put_in_place(5 * MIB);
    assert_eq!(claimed(), before);
}

#[test]
fn a_child_of_a_process_that_begins_to_pin_in_place_has_no_engine() {
    let handle = sync(2);
    handle.pins_in_place();
    assert!(handle.enter_child() && !handle.is_on());
}
