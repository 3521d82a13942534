//! What exact fit without alignment is worth: the sizes that people report as wasted.

use pinbuddy_core::{Config, Decision, Engine, Growth, NewSegment, Region};

const MIB: usize = 1 << 20;

/// How many blocks of `bytes` one segment of `segment` bytes serves.
fn served(segment: usize, bytes: usize) -> usize {
    let mut engine = Engine::new(Config {
        segment_bytes: segment,
        threshold_bytes: 0,
        growth: Growth::Segment,
    });
    // Any alignment: offsets count from the segment's start, never from address 0.
    let region = Region {
        base: 0x7fff_1234_5000,
        bytes: segment,
    };
    engine.adopt(NewSegment::new(region).unwrap()).unwrap();
    let mut count = 0;
    while let Decision::Block(_) = engine.request(bytes) {
        count += 1;
    }
    engine.audit().unwrap();
    count
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
