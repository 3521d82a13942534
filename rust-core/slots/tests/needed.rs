//! A request whose place is in a region that a clear has returned.

use pinbuddy_slots::{GRANULE, Slots};

use crate::layouts::{lane, one, slot};

#[test]
fn a_request_whose_region_was_returned_gets_its_slot_once_that_is_there() {
    let mut layout = one(1, vec![slot(1, 0); 2], lane([], 0..2));
    layout.regions.push(GRANULE);
    layout.slots[1].region = 1;
    let mut slots = Slots::new(&layout).unwrap();
    slots.pinned(0, 1 << 30);
    assert_eq!(slots.request(0, 1).map(|it| it.slot), Some(0));
    assert_eq!(slots.request(0, 1), None);
    assert_eq!(slots.take_needed(1), Some((1, 1)));
    assert_eq!(slots.take_needed(1), None, "once");
    assert_eq!(slots.serve_needed(1), None, "it is not there yet");
    slots.pinned(1, 2 << 30);
    let address = slots.serve_needed(1).map(|it| it.address);
    assert_eq!((address, slots.counts().hits, slots.counts().misses), (Some(2 << 30), 2, 0));
    // What another request needed is not this one's.
    slots.take_idle();
    assert!(slots.release(1) && slots.take_idle().len() == 1);
    assert_eq!((slots.request(0, 1), slots.request(0, 1)), (None, None));
    assert_eq!(slots.take_needed(2 * GRANULE), None);
}
