//! What exact fit without alignment saves, for sizes that users have reported as wasteful.

use pinbuddy_core::{Config, Decision, Engine, NewSegment, Region};

const MIB: usize = 1 << 20;

fn engine(segment_bytes: usize) -> Engine {
    Engine::new(Config {
        segment_bytes,
        threshold_bytes: 0,
    })
}

fn adopt(engine: &mut Engine, bytes: usize) {
    // Any alignment: offsets count from the segment's start, never from address 0.
    let base = 0x7fff_1234_5000 + engine.stats().pinned_bytes.current as usize;
    let segment = NewSegment::new(Region { base, bytes }).unwrap();
    engine.adopt(segment).unwrap();
}

/// How many blocks of `bytes` one segment of `segment` bytes serves.
fn served(segment: usize, bytes: usize) -> usize {
    let mut engine = engine(segment);
    adopt(&mut engine, segment);
    let mut count = 0;
    while let Decision::Block(_) = engine.request(bytes) {
        count += 1;
    }
    engine.audit().unwrap();
    count
}

/// What is pinned for these requests, in turn and all kept, in MiB.
fn pinned(segment: usize, requests: &[usize]) -> usize {
    let mut engine = engine(segment);
    for request in requests {
        if let Decision::Pin { bytes } = engine.request(*request) {
            adopt(&mut engine, bytes);
            let block = engine.request(*request);
            assert!(matches!(block, Decision::Block(_)), "{request}: {block:?}");
        }
    }
    engine.audit().unwrap();
    engine.stats().pinned_bytes.current as usize / MIB
}

#[test]
fn a_segment_serves_as_many_blocks_as_fit_in_it() {
    // Power-of-two buddies would serve 4, 2 and 15: one per aligned 256, 512 and 64 MiB.
    assert_eq!(served(1024 * MIB, 129 * MIB + MIB / 2), 7);
    assert_eq!(served(1000 * MIB, 300 * MIB), 3);
    assert_eq!(served(1000 * MIB, 33 * MIB), 30);
}

#[test]
fn a_segment_cut_to_the_request_wastes_nothing() {
    let request = 129 * MIB + MIB / 2;
    assert_eq!(served(8 * request, request), 8);
}

#[test]
fn the_least_that_is_pinned_is_what_is_asked_for() {
    let request = 129 * MIB + MIB / 2;
    // Powers of two would be 256 MiB each.
    assert_eq!(pinned(1024 * MIB, &[request; 4]), 2 * 259);
}

#[test]
fn a_request_longer_than_a_segment_pins_no_power_of_two() {
    // 2.13 GiB, of which a power of two would make 4.
    let request = 2133 * MIB;
    assert_eq!(pinned(1024 * MIB, &[request, request]), 2 * 2133);
    // One GiB is no longer than a segment.
    assert_eq!(pinned(1024 * MIB, &[1024 * MIB]), 1024);
    assert_eq!(pinned(1024 * MIB, &[1025 * MIB - 1]), 1025);
}
