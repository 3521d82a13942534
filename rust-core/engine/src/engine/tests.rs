//! What the engine answers and counts.

use super::*;
use crate::kind::{SMALL, SegmentKind};
use crate::units::{GRANULE, MAX_REGION, Region};

const MIB: usize = 1 << 20;

fn engine(segment_bytes: usize, threshold_bytes: usize) -> Engine {
    Engine::new(Config {
        segment_bytes,
        threshold_bytes,
    })
}

fn block(decision: Decision) -> Block {
    match decision {
        Decision::Block(block) => block,
        other => panic!("no block: {other:?}"),
    }
}

/// The regions of all that is idle.
fn take_idle(engine: &mut Engine) -> Vec<Region> {
    let idle = engine.take_idle(usize::MAX);
    idle.iter().map(IdleSegment::region).collect()
}

#[test]
fn the_threshold_is_the_smallest_request_served() {
    let mut engine = engine(1024 * MIB, 4 * MIB);
    assert_eq!(engine.request(0), Decision::PassThrough);
    assert_eq!(engine.request(4 * MIB - 1), Decision::PassThrough);
    assert_eq!(engine.request(4 * MIB), Decision::Pin { bytes: 4 * MIB });
    let stats = engine.stats();
    assert_eq!((stats.hits, stats.misses, stats.pass_through), (0, 1, 2));
}

#[test]
fn threshold_zero_serves_all_but_empty_requests() {
    let mut engine = engine(1024 * MIB, 0);
    assert_eq!(engine.request(0), Decision::PassThrough);
    assert_eq!(engine.request(1), Decision::Pin { bytes: GRANULE });
}

#[test]
fn the_least_to_pin_is_the_request_in_granules() {
    let mut engine = engine(1000 * MIB - 1, 0);
    assert_eq!(engine.request(5 * MIB), Decision::Pin { bytes: 5 * MIB });
    // Longer than a segment: not the next power of two.
    let own = Decision::Pin { bytes: 2133 * MIB };
    assert_eq!(engine.request(2133 * MIB - 1), own);
    assert_eq!(Engine::exact_region(2133 * MIB - 1), Some(2133 * MIB));
    assert_eq!(Engine::exact_region(MAX_REGION + 1), None);
}

#[test]
fn sizes_at_the_edge_of_usize_neither_overflow_nor_pin() {
    for segment_bytes in [0, 1, usize::MAX] {
        let mut engine = engine(segment_bytes, 0);
        for bytes in [MAX_REGION + 1, usize::MAX - GRANULE, usize::MAX] {
            assert_eq!(engine.request(bytes), Decision::PassThrough, "{bytes}");
        }
        let Decision::Pin { bytes } = engine.request(1) else {
            panic!("one byte passes")
        };
        assert!((1..=MAX_REGION).contains(&bytes), "{bytes}");
    }
    assert_eq!(engine(0, 0).request(1), Decision::Pin { bytes: GRANULE });
}

#[test]
fn the_life_of_a_request() {
    let mut engine = engine(64 * MIB, 0);
    let pin = Decision::Pin { bytes: 2 * GRANULE };
    assert_eq!(engine.request(5000), pin);
    engine.adopt_region(0x7000, 64 * MIB);
    let first = block(engine.request(5000));
    let second = block(engine.request(1));
    assert_eq!((first.bytes, engine.address(first)), (2 * GRANULE, 0x7000));
    assert_eq!(
        (second.bytes, engine.address(second)),
        (GRANULE, 0x7000 + 2 * GRANULE)
    );
    engine.defer(first).unwrap();
    assert_eq!(block(engine.request(1)).offset, 3 * GRANULE); // pending is not free
    engine.release(first).unwrap();
    assert_eq!(block(engine.request(1)).offset, 0);
    assert_eq!(engine.audit(), Ok(()));
}

#[test]
fn statistics_follow_and_reset() {
    let mut engine = engine(10 * GRANULE, 0);
    engine.adopt_region(1, 10 * GRANULE + 7);
    let first = block(engine.request(3 * GRANULE));
    let second = block(engine.request(2 * GRANULE));
    engine.defer(second).unwrap();
    let stats = engine.stats();
    let g = GRANULE as u64;
    assert_eq!(
        (stats.pinned_bytes.current, stats.segments.current),
        (10 * g + 7, 1)
    );
    assert_eq!(
        (stats.active_bytes.current, stats.pending_bytes.current),
        (5 * g, 2 * g)
    );
    assert_eq!(
        (stats.idle_bytes, stats.largest_free_run_bytes),
        (5 * g + 7, 5 * g)
    );
    assert_eq!(
        (stats.active_bytes.peak, stats.active_blocks.peak),
        (5 * g, 2)
    );
    engine.release(first).unwrap();
    engine.release(second).unwrap();
    engine.reset_peaks();
    engine.reset_accumulated();
    let region = Region {
        base: 1,
        bytes: 10 * GRANULE + 7,
    };
    assert_eq!(take_idle(&mut engine), [region]);
    let stats = engine.stats();
    assert_eq!((stats.active_bytes.peak, stats.hits), (0, 0));
    assert_eq!(
        (stats.pinned_bytes.current, stats.pinned_bytes.freed),
        (0, 10 * g + 7)
    );
    assert_eq!((stats.idle_bytes, stats.largest_free_run_bytes), (0, 0));
    assert_eq!(engine.audit(), Ok(()));
}

#[test]
fn small_and_large_requests_are_served_from_different_segments() {
    let mut engine = engine(16 * MIB, 0);
    let first = engine.adopt_region(0x100_0000, 16 * MIB);
    let pin = |bytes| Decision::Pin { bytes };
    let small = block(engine.request(SMALL - 1));
    assert_eq!(engine.request(SMALL), pin(SMALL));
    assert_eq!(block(engine.request(1)).segment, first);
    let second = engine.adopt_region(0x200_0000, 16 * MIB);
    assert_eq!(block(engine.request(SMALL)).segment, second);
    engine.release(small).unwrap();
    assert_eq!(block(engine.request(SMALL - 1)), small);
    let kinds: Vec<SegmentKind> = engine.segments().map(|view| view.kind).collect();
    assert_eq!(kinds, [SegmentKind::Small, SegmentKind::Large]);
    // Only when nothing more can be pinned do they share one; that is a hit, and no second miss.
    let before = engine.stats();
    assert_eq!(engine.request(14 * MIB), pin(14 * MIB));
    assert_eq!(engine.request_anywhere(14 * MIB), None);
    assert_eq!(
        engine.request(12 * MIB),
        Decision::Block(Block {
            segment: second,
            offset: 4 * MIB,
            bytes: 12 * MIB,
        })
    );
    assert_eq!(engine.request(11 * MIB), pin(11 * MIB));
    let guest = engine.request_anywhere(11 * MIB).unwrap();
    assert_eq!((guest.segment, guest.offset), (first, 4 * MIB + GRANULE));
    let stats = engine.stats();
    assert_eq!(
        (stats.hits - before.hits, stats.misses - before.misses),
        (2, 2)
    );
    assert_eq!(engine.audit(), Ok(()));
}

#[test]
fn anywhere_is_not_for_what_passes_through() {
    let mut engine = engine(16 * MIB, 4 * MIB);
    engine.adopt_region(0x100_0000, 16 * MIB);
    engine.adopt_region(0x1000_0000, 18 * MIB);
    let before = engine.stats();
    for bytes in [0, 4 * MIB - 1, 18 * MIB + 1, MAX_REGION + 1, usize::MAX] {
        assert_eq!(engine.request_anywhere(bytes), None, "{bytes}");
    }
    assert_eq!(engine.stats(), before);
}

#[test]
fn anywhere_a_dedicated_region_of_any_size_serves_what_is_longer_than_a_segment() {
    let mut engine = engine(16 * MIB, 4 * MIB);
    let region = engine.adopt_region(0x1000_0000, 90 * MIB);
    assert!(matches!(engine.request(17 * MIB), Decision::Pin { .. }));
    let block = engine.request_anywhere(17 * MIB).unwrap();
    assert_eq!((block.segment, block.bytes), (region, 17 * MIB));
    assert_eq!(engine.request_anywhere(17 * MIB), None);
    assert_eq!(engine.audit(), Ok(()));
}

#[test]
fn a_region_longer_than_a_segment_serves_only_requests_that_are_too() {
    let mut engine = engine(64 * MIB - 1, 0);
    let dedicated = engine.adopt_region(0x1000_0000, 72 * MIB);
    assert_eq!(engine.request(64 * MIB), Decision::Pin { bytes: 64 * MIB });
    assert_eq!(engine.request_anywhere(64 * MIB), None);
    let block = block(engine.request(64 * MIB + 1)); // 8 MiB less a granule to spare: an eighth
    assert_eq!(
        block,
        Block {
            segment: dedicated,
            offset: 0,
            bytes: 64 * MIB + GRANULE,
        }
    );
    assert_eq!(engine.address(block), 0x1000_0000);
    // What is left of it is idle, and serves nothing.
    let stats = engine.stats();
    assert_eq!(stats.idle_bytes, (8 * MIB - GRANULE) as u64);
    assert_eq!(stats.largest_free_run_bytes, 0);
    assert_eq!(stats.dedicated_bytes, (72 * MIB) as u64);
    assert_eq!(stats.segments.current, 1);
    assert_eq!(engine.request(MIB), Decision::Pin { bytes: MIB });
    assert_eq!(engine.audit(), Ok(()));
    engine.defer(block).unwrap();
    assert_eq!(engine.request(65 * MIB), Decision::Pin { bytes: 65 * MIB });
    engine.release(block).unwrap();
    assert!(matches!(engine.request(65 * MIB), Decision::Block(_)));
    assert_eq!(engine.audit(), Ok(()));
}

#[test]
fn a_dedicated_region_is_not_wasted_on_a_request_it_is_too_large_for() {
    let mut engine = engine(16 * MIB, 0);
    engine.adopt_region(0x1000_0000, 90 * MIB);
    // 80 MiB and an eighth are 90 MiB; a granule less, and the region is too large.
    let bytes = 80 * MIB - GRANULE;
    assert_eq!(engine.request(bytes), Decision::Pin { bytes });
    assert_eq!(
        block(engine.request(80 * MIB - GRANULE + 1)).bytes,
        80 * MIB
    );
}

#[test]
fn what_was_pinned_for_a_request_serves_it_however_short_segments_are() {
    for segment_bytes in [0, 1, MIB, 8 * MIB] {
        for request in [1, MIB, 2 * MIB + 1, 8 * MIB, 8 * MIB + 1] {
            let mut engine = engine(segment_bytes, 0);
            let Decision::Pin { bytes } = engine.request(request) else {
                panic!("nothing is pinned")
            };
            engine.adopt_region(0x1000, bytes);
            block(engine.request(request));
        }
    }
}

#[test]
fn a_tail_makes_no_segment_dedicated() {
    let mut engine = engine(16 * MIB, 0);
    let id = engine.adopt_region(1, 16 * MIB + GRANULE - 1);
    assert_eq!(block(engine.request(16 * MIB)).segment, id);
    assert_eq!(engine.stats().dedicated_bytes, 0);
}

#[test]
fn dedicated_regions_are_unpinned_first_and_leave_the_statistics() {
    let mut engine = engine(16 * MIB, 0);
    engine.adopt_region(0x1000_0000, 16 * MIB);
    engine.adopt_region(0x2000_0000, 20 * MIB);
    let idle = engine.take_idle(1);
    assert_eq!(idle.len(), 1);
    assert!(idle[0].is_dedicated());
    assert_eq!(idle[0].region().base, 0x2000_0000);
    let stats = engine.stats();
    assert_eq!((stats.dedicated_bytes, stats.segments.current), (0, 1));
    assert_eq!(stats.pinned_bytes.current, (16 * MIB) as u64);
    assert_eq!(take_idle(&mut engine).len(), 1);
    assert_eq!(engine.audit(), Ok(()));
}

#[test]
fn blocks_are_told_in_order() {
    let mut engine = engine(MIB, 0);
    let id = engine.adopt_region(0x10_0000, MIB);
    let taken: Vec<Block> = (1..5).map(|n| block(engine.request(n * GRANULE))).collect();
    engine.release(taken[1]).unwrap();
    engine.defer(taken[2]).unwrap();
    let view = |block: &Block, pending| BlockView {
        offset: block.offset,
        bytes: block.bytes,
        pending,
    };
    let expected = [
        view(&taken[0], false),
        view(&taken[2], true),
        view(&taken[3], false),
    ];
    assert!(engine.blocks(id).unwrap().eq(expected));
    for block in [taken[0], taken[2], taken[3]] {
        engine.release(block).unwrap();
    }
    assert_eq!(engine.blocks(id).unwrap().next(), None);
    engine.take_idle(usize::MAX);
    assert!(engine.blocks(id).is_none());
}

#[test]
fn misuse_changes_no_statistic() {
    let mut engine = engine(10 * GRANULE, 0);
    engine.adopt_region(0x1000, 10 * GRANULE);
    let kept = block(engine.request(GRANULE));
    let gone = block(engine.request(GRANULE));
    engine.release(gone).unwrap();
    let before = engine.stats();
    assert!(engine.release(gone).is_err());
    assert!(engine.defer(gone).is_err());
    assert!(
        engine
            .release(Block {
                bytes: 2 * GRANULE,
                ..kept
            })
            .is_err()
    );
    let over = Region {
        base: 0x1000,
        bytes: GRANULE,
    };
    assert!(engine.adopt(NewSegment::new(over).unwrap()).is_err());
    assert_eq!(engine.stats(), before);
    assert_eq!(engine.audit(), Ok(()));
}

#[test]
#[should_panic(expected = "no segment 3.0")]
fn the_address_of_an_unknown_segment_is_an_assertion() {
    let segment = SegmentId::from_u32(3);
    engine(GRANULE, 0).address(Block {
        segment,
        offset: 0,
        bytes: GRANULE,
    });
}

#[test]
fn beside_cached_blocks_a_request_longer_than_a_segment_takes_no_region_that_another_needs() {
    let mut engine = engine(64 * MIB, 0);
    for (at, bytes) in [(1, 69 * MIB), (2, 72 * MIB)] {
        let region = Region {
            base: at << 40,
            bytes,
        };
        engine.adopt(NewSegment::new(region).unwrap()).unwrap();
    }
    // A cached block may fit the shorter region: it is not taken, though the request fits exactly.
    assert_eq!(engine.request_beside(69 * MIB, Cached::default()), None);
}
