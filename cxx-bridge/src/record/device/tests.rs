//! Devices of numbers that no other test has, so that nothing is left over.

use super::*;
use crate::record::writing::tests::{found, recording, request};
use crate::record::{Allocation, Kind, Source};
use pinbuddy_events::{Op, Whose};

/// What was recorded, but for times; and the allocations, in the order in which they were named first.
fn said(rings: &writing::Rings) -> (Vec<(usize, Whose, Kind)>, Vec<Allocation>) {
    let mut named = Vec::new();
    let mut number = |allocation| {
        if !named.contains(&allocation) {
            named.push(allocation);
        }
        named.iter().position(|&it| it == allocation).unwrap()
    };
    let entries = found(rings).into_iter();
    let all = entries.map(|(_, it)| (number(it.allocation), it.whose, it.kind));
    (all.collect(), named)
}

#[test]
fn a_block_is_named_by_its_address_and_its_end_is_one_event_unless_it_was_used() {
    let (_alone, rings) = recording(11);
    let trace = device_trace(63);
    trace.request(0x1000, 5, 0xA, false);
    trace.request(0x2000, usize::MAX, 0xB, true);
    // Nobody knows these.
    trace.uses(0x3000, 0xA);
    trace.free(0x3000);
    trace.done(0x3000);
    trace.free(0x1000);
    trace.done(0x1000);
    trace.uses(0x2000, 0xA);
    trace.uses(0x2000, 0xB);
    trace.free(0x2000);
    // Its place is another's.
    trace.request(0x1000, 6, 0xA, false);
    trace.done(0x2000);
    trace.done(0x2000);
    trace.free(0x1000);
    trace.done(0x1000);
    trace.segment(7, false);
    trace.segment(7, true);
    let (whose, any) = (Whose::Device(63), Whose::Device(0));
    let (all, named) = said(&rings);
    assert_eq!(
        all,
        [
            (0, whose, request(5, 0, false)),
            (1, whose, request((1 << 41) - 1, 1, true)),
            (0, any, Kind::Free { events: 0 }),
            (1, any, Kind::Use { stream: 0 }),
            (1, any, Kind::Use { stream: 1 }),
            (1, any, Kind::Free { events: 1 }),
            (2, whose, request(6, 0, false)),
            (1, any, Kind::Done),
            (2, any, Kind::Free { events: 0 }),
            (3, whose, Kind::Event(Op::SegmentAlloc { bytes: 7 })),
            (3, whose, Kind::Event(Op::SegmentFree { bytes: 7 })),
        ]
    );
    assert_eq!(named[3], Allocation::new(11, 0), "of no block");
    assert_eq!(trace.used.load(Ordering::Relaxed), 0);
    rings.record(0);
}

#[test]
fn a_recording_has_no_end_of_an_earlier_ones_blocks() {
    let (_alone, rings) = recording(12);
    let trace = device_trace(62);
    for address in [0x1000, 0x2000] {
        trace.request(address, 5, 0xA, false);
        trace.uses(address, 0xB);
    }
    rings.record(0);
    // Nothing is heard of that.
    trace.done(0x1000);
    trace.request(0x3000, 5, 0xA, false);
    rings.record(13);
    found(&rings);
    trace.free(0x2000);
    trace.done(0x2000);
    trace.done(0x3000);
    assert_eq!(found(&rings), []);
    trace.request(0x1000, 6, 0xB, false);
    trace.free(0x1000);
    trace.done(0x1000);
    let (all, _) = said(&rings);
    assert_eq!(all, [(0, Whose::Device(62), request(6, 1, false)), (0, Whose::Device(0), Kind::Free { events: 0 }),]);
    assert_eq!(trace.used.load(Ordering::Relaxed), 0);
    assert!(trace.state.lock().blocks.is_empty());
    rings.record(0);
}

#[test]
fn streams_beyond_the_last_number_are_one() {
    let (_alone, rings) = recording(14);
    let trace = device_trace(61);
    let streams = if cfg!(miri) { 4 } else { 5000 };
    for stream in 0..streams {
        trace.state.lock().number_of(stream);
    }
    trace.request(0x1000, 5, streams, false);
    trace.uses(0x1000, streams + 1);
    let [number, next] = [streams, streams + 1].map(|it| it.min(4095));
    let (all, _) = said(&rings);
    assert_eq!([all[0].2, all[1].2], [request(5, number as u32, false), Kind::Use { stream: next as u64 }]);
    trace.done(0x1000);
    rings.record(0);
}

#[test]
fn where_nothing_is_recorded_nobody_waits_for_the_lock() {
    // A child has it locked, if another thread of its parent had.
    let (_alone, rings) = recording(15);
    let trace = device_trace(60);
    trace.request(0x1000, 5, 0xA, false);
    trace.uses(0x1000, 0xB);
    rings.record(0);
    let _held = trace.state.lock();
    let (over, is_over) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        trace.request(0x2000, 5, 0xA, false);
        trace.uses(0x1000, 0xB);
        trace.free(0x1000);
        trace.done(0x1000);
        over.send(()).unwrap();
    });
    let patience = std::time::Duration::from_secs(60);
    assert!(is_over.recv_timeout(patience).is_ok(), "it waits");
}
