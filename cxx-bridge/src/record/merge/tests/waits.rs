//! Waits for the driver among what rings hold.

use super::*;

#[test]
fn a_wait_is_of_the_request_that_lives_or_of_none() {
    let all = [
        entry(100, 1, request(8)),
        entry(100, 1, wait(150)),
        entry(110, 2, request(9)),
        entry(120, 2, free(0)),
        // Another thread has freed it, whose processor's counter is ahead.
        entry(130, 2, wait(20)),
        // Of a request that was dropped, and of no request.
        entry(140, 3, wait(30)),
        entry(150, 0, CLEAR),
        entry(160, 0, wait(40)),
        // It began before the recording did.
        entry(170, 0, wait(400)),
    ];
    let (merger, seen) = drained(1, &[(0, 3, &all)], Lost::default());
    insta::assert_snapshot!(seen.text(), @r#"
    {"t":200,"op":"alloc","id":1,"bytes":8,"thread":3}
    {"t":200,"op":"wait","id":1,"took":150,"thread":3}
    {"t":220,"op":"alloc","id":2,"bytes":9,"thread":3}
    {"t":240,"op":"free","id":2,"thread":3}
    {"t":260,"op":"wait","took":20,"thread":3}
    {"t":280,"op":"wait","took":30,"thread":3}
    {"t":300,"op":"clear"}
    {"t":320,"op":"wait","took":40,"thread":3}
    {"t":340,"op":"wait","took":340,"thread":3}
    "#);
    assert_eq!((seen.lost, merger.early.len()), (Lost::default(), 0));
    check(&seen.events);
}
