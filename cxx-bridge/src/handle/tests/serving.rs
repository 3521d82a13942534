//! Requests, the regions that are pinned for them, and the reports about them.

use super::*;

#[test]
fn every_pinned_byte_is_in_one_part() {
    let handle = sync(2);
    let first = handle.request(8 * MIB).unwrap();
    let freed = handle.request(16 * MIB).unwrap();
    let last = handle.request(8 * MIB).unwrap();
    handle.defer(freed.block);
    handle.release(first.block);
    let parts = handle.parts();
    let sum = |which: fn(&crate::ffi::Part) -> bool| -> usize {
        parts.iter().filter(|it| which(it)).map(|it| it.bytes).sum()
    };
    assert_eq!(sum(|it| it.live), 8 * MIB);
    assert_eq!(sum(|it| it.pending), 16 * MIB);
    assert_eq!(sum(|_| true), 2 * SEGMENT);
    let live = parts.iter().find(|it| it.live).unwrap();
    assert_eq!(live.address, last.address);
}

#[test]
fn the_report_is_what_people_read() {
    let handle = sync(1);
    handle.request(8 * MIB).unwrap();
    let freed = handle.request(16 * MIB).unwrap();
    handle.defer(freed.block);
    insta::assert_snapshot!(serde_json::to_string_pretty(&handle.report()).unwrap());
    insta::assert_snapshot!("segments", serde_json::to_string_pretty(&handle.segments()).unwrap());
    assert_eq!(
        handle.state_line(),
        "pinbuddy: 64 MiB pinned (8 MiB live, 16 MiB pending, 40 MiB idle, the longest free run \
         40 MiB); segments: 1; budget: 1048576 GiB, as the test has it; warm-up: done"
    );
}
