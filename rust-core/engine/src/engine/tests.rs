//! What the engine answers and counts at the edges that `tests/model`, which says the rest, does not reach.

use super::*;
use crate::units::{GRANULE, MAX_REGION, Region};

const MIB: usize = 1 << 20;

fn engine(segment_bytes: usize, threshold_bytes: usize) -> Engine {
    Engine::new(Config { segment_bytes, threshold_bytes })
}

/// The block for a request that is served.
pub(crate) fn block(engine: &mut Engine, bytes: usize) -> Block {
    match engine.request(bytes) {
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
fn sizes_at_the_edge_of_usize_neither_overflow_nor_pin() {
    for segment_bytes in [0, 1, usize::MAX] {
        let mut engine = engine(segment_bytes, 0);
        for bytes in [MAX_REGION + 1, usize::MAX - GRANULE, usize::MAX] {
            assert_eq!(engine.request(bytes), Decision::PassThrough, "{bytes}");
            assert_eq!(Engine::exact_region(bytes), None, "{bytes}");
        }
        let Decision::Pin { bytes } = engine.request(1) else { panic!("one byte passes") };
        assert!((1..=MAX_REGION).contains(&bytes), "{bytes}");
        engine.adopt_region(0x1000, bytes);
        block(&mut engine, 1);
    }
    assert_eq!(engine(0, 0).request(1), Decision::Pin { bytes: GRANULE });
}

#[test]
fn statistics_follow_and_reset() {
    let mut engine = engine(10 * GRANULE, 0);
    engine.adopt_region(1, 10 * GRANULE + 7);
    let first = block(&mut engine, 3 * GRANULE);
    let second = block(&mut engine, 2 * GRANULE);
    engine.defer(second).unwrap();
    let (stats, g) = (engine.stats(), GRANULE as u64);
    assert_eq!((stats.active_bytes.peak, stats.active_blocks.peak), (5 * g, 2));
    engine.release(first).unwrap();
    engine.release(second).unwrap();
    engine.reset_peaks();
    engine.reset_accumulated();
    let region = Region { base: 1, bytes: 10 * GRANULE + 7 };
    assert_eq!(take_idle(&mut engine), [region]);
    let stats = engine.stats();
    assert_eq!((stats.active_bytes.peak, stats.hits), (0, 0));
    assert_eq!((stats.pinned_bytes.current, stats.pinned_bytes.freed), (0, 10 * g + 7));
    assert_eq!((stats.idle_bytes, stats.largest_free_run_bytes), (0, 0));
    assert_eq!(engine.audit(), Ok(()));
}

#[test]
#[should_panic(expected = "no segment 3.0")]
fn the_address_of_an_unknown_segment_is_an_assertion() {
    let segment = SegmentId::from_u32(3);
    engine(GRANULE, 0).address(Block { segment, offset: 0, bytes: GRANULE });
}

#[test]
fn beside_cached_blocks_a_request_longer_than_a_segment_takes_no_region_that_another_needs() {
    let mut engine = engine(64 * MIB, 0);
    for (at, bytes) in [(1, 69 * MIB), (2, 72 * MIB)] {
        let region = Region { base: at << 40, bytes };
        engine.adopt(NewSegment::new(region).unwrap()).unwrap();
    }
    // A cached block may fit the shorter region: it is not taken, though the request fits exactly.
    assert_eq!(engine.request_beside(69 * MIB, Cached::default()), None);
}

/// Cuts blocks of half a segment beside cached ones until none has room; then the caches, which have `served` so many
/// requests, are flushed. Returns how many were cut.
fn cut_and_flush(engine: &mut Engine, served: u64) -> usize {
    let mut cut: Vec<Block> = Vec::new();
    let mut cached = Cached::default();
    while let Some(block) = engine.request_beside(8 * MIB, cached) {
        cached.bytes += block.bytes;
        cut.push(block);
    }
    engine.reused(served, 0);
    cut.iter().for_each(|it| engine.release(*it).unwrap());
    cut.len()
}

#[test]
fn idle_segments_serve_beside_cached_blocks_once_those_serve_few_and_as_long_as_they_gain_by_it() {
    let mut engine = engine(16 * MIB, 0);
    for at in 1..=8 {
        engine.adopt_region(at << 40, 16 * MIB);
    }
    block(&mut engine, 8 * MIB);
    assert_eq!(cut_and_flush(&mut engine, 1), 1);
    assert_eq!(cut_and_flush(&mut engine, 0), 1, "as many were served as cut before");
    assert_eq!(cut_and_flush(&mut engine, 15), 15, "fewer were");
    assert_eq!(cut_and_flush(&mut engine, 14), 15, "as many again");
    assert_eq!(cut_and_flush(&mut engine, 0), 1, "fewer, with idle segments, too");
    assert_eq!(cut_and_flush(&mut engine, 0), 1);
    engine.cleared();
    assert_eq!(cut_and_flush(&mut engine, 0), 1);
    assert_eq!(cut_and_flush(&mut engine, 15), 15, "the cache was cleared");
    let live: Vec<Block> = (0..8).map(|_| block(&mut engine, 8 * MIB)).collect();
    engine.reused(15, 0);
    live.into_iter().for_each(|it| engine.release(it).unwrap());
    assert_eq!(cut_and_flush(&mut engine, 15), 15);
    assert_eq!(cut_and_flush(&mut engine, 15), 1, "more than half was needed at once");
}
