//! A request whose place is in a region that a clear has returned.

use pinbuddy_slots::{GRANULE, Lane, Layout, Slot, Slots};

#[test]
fn a_request_whose_region_was_returned_gets_its_slot_once_that_is_there() {
    let slot = |region| Slot {
        bytes: GRANULE,
        region,
        offset: 0,
    };
    let mut slots = Slots::new(&Layout {
        regions: vec![GRANULE, GRANULE],
        slots: vec![slot(0), slot(1)],
        lanes: vec![Lane {
            period: vec![0, 1],
            ..Lane::default()
        }],
    })
    .unwrap();
    slots.pinned(0, 1 << 30);
    assert_eq!(slots.request(0, 1).map(|it| it.slot), Some(0));
    assert_eq!(slots.request(0, 1), None);
    assert_eq!(slots.take_needed(1), Some((1, 1)));
    assert_eq!(slots.take_needed(1), None, "once");
    assert_eq!(slots.serve_needed(1), None, "it is not there yet");
    slots.pinned(1, 2 << 30);
    let address = slots.serve_needed(1).map(|it| it.address);
    assert_eq!(
        (address, slots.counts().hits, slots.counts().misses),
        (Some(2 << 30), 2, 0)
    );
    // What another request needed is not this one's.
    slots.take_idle();
    assert!(slots.release(1) && slots.take_idle().len() == 1);
    assert_eq!((slots.request(0, 1), slots.request(0, 1)), (None, None));
    assert_eq!(slots.take_needed(2 * GRANULE), None);
}
