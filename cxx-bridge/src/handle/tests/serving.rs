//! Requests, the regions that are pinned for them, and the reports about them.

use super::*;

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
