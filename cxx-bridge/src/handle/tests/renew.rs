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
