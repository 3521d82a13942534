//! Phases whose sizes differ, with exact growth: what is unpinned and pinned, by whom and when.

use super::*;

fn exact() -> Tested {
    with(&[
        ("BUDDY_WARMUP", "off"),
        ("BUDDY_GROWTH", "exact"),
        ("BUDDY_BLOCK_SIZE_MB", "1024"),
    ])
}

/// Runs a phase: 100 MiB in all, divided differently in each phase.
fn phase(handle: Tested, number: usize) {
    let some = (number * 7 % 11 + 1) * MIB;
    let sizes = [
        10 * MIB + some,
        20 * MIB - some,
        40 * MIB - some,
        30 * MIB + some,
    ];
    let grants = sizes.map(|bytes| handle.request(bytes).unwrap());
    for grant in grants {
        handle.release(grant.block);
    }
    settled(handle);
}

#[test]
fn regions_that_do_not_fit_are_replaced_by_one_that_does() {
    let handle = exact();
    (0..11).for_each(|number| phase(handle, number));
    assert_eq!(pinned(handle), [108]);
    let pins = asked(handle).len();
    (11..30).for_each(|number| phase(handle, number));
    assert_eq!(asked(handle).len(), pins);
    let bytes = handle.stats().unwrap().pinned_bytes.current as usize;
    assert_eq!(handle.pinner.quota().left(), (1 << 50) - bytes);
}

#[test]
fn what_was_pinned_ahead_is_never_unpinned_for_that() {
    let handle = with(&[
        ("BUDDY_WARMUP", "sync"),
        ("BUDDY_GROWTH", "exact"),
        ("BUDDY_BLOCK_COUNT", "1"),
        ("BUDDY_BLOCK_SIZE_MB", "128"),
    ]);
    (0..20).for_each(|number| phase(handle, number));
    assert_eq!(asked(handle), [128]);
}

#[test]
fn where_that_one_is_refused_every_request_is_served_as_before() {
    let handle = exact();
    phase(handle, 0);
    numbers(handle).largest.set(41 * MIB);
    (1..20).for_each(|number| phase(handle, number));
    assert!(!is_retired(handle));
    assert_eq!(asked(handle).iter().filter(|it| **it == 108).count(), 1);
}

#[test]
fn where_nothing_more_can_be_pinned_what_is_idle_still_serves() {
    let handle = exact();
    phase(handle, 0);
    numbers(handle).left.set(1);
    // The second phase unpins all, and pins one region of two fifths.
    let grant = handle.request(12 * MIB).unwrap();
    assert_eq!(pinned(handle), [40]);
    assert_eq!(handle.request(90 * MIB), None, "upstream's");
    handle.release(grant.block);
    assert!(handle.request(40 * MIB).is_some());
    assert!(!is_retired(handle));
}

#[test]
fn cached_blocks_are_no_part_of_a_phase() {
    let handle = exact();
    (0..11).for_each(|number| phase(handle, number));
    let grant = handle.request(60 * MIB).unwrap();
    let little = request_beside(handle, 8, 0).unwrap();
    handle.release(little.block);
    handle.defer(grant.block);
    handle.cache(grant.block);
    // There is room beside it, but the phase is over, and the engine must be asked.
    assert!(request_beside(handle, 8, 60).is_none());
}

#[test]
fn threads_in_phases_are_all_served() {
    let handle = exact();
    thread::scope(|scope| {
        for first in 0..4 {
            scope.spawn(move || (0..30).for_each(|number| phase(handle, first + number)));
        }
    });
    assert!(!is_retired(handle));
    assert_eq!(handle.stats().unwrap().active_blocks.current, 0);
    handle.empty_cache();
    assert_eq!(pinned(handle), NONE);
}
