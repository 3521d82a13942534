//! Why small and large blocks are kept apart: what stays pinned once large blocks are freed.

use pinbuddy_core::{Block, Config, Decision, Engine, NewSegment, Region, SegmentKind};

const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

/// A block for the request; if none fits, pins what the engine asks for, or `whole` bytes if more.
fn take(engine: &mut Engine, request: usize, whole: usize) -> Block {
    match engine.request(request) {
        Decision::Block(block) => block,
        Decision::Pin { bytes } => {
            let bytes = bytes.max(whole);
            let base = GIB + engine.stats().pinned_bytes.allocated as usize; // nowhere twice
            let segment = NewSegment::new(Region { base, bytes }).unwrap();
            engine.adopt(segment).unwrap();
            take(engine, request, whole)
        }
        other => panic!("{request} bytes: {other:?}"),
    }
}

/// How many segments stay pinned after long-lived blocks (1 MiB and 3.5 MiB) were allocated between
/// short-lived ones (100 MiB and 61 MiB), all divided by `shrink`; and how many the long-lived ones
/// need alone.
fn segments_kept(shrink: usize) -> (usize, usize) {
    let segment_bytes = GIB / shrink;
    let mut engine = Engine::new(Config { segment_bytes, threshold_bytes: 0 });
    let mut kept = 0;
    let mut passing = Vec::new();
    for n in 0..300 {
        let long = if n % 3 == 0 { 7 * MIB / 2 } else { MIB } / shrink;
        kept += take(&mut engine, long, segment_bytes).bytes;
        let short = if n % 2 == 0 { 100 * MIB } else { 61 * MIB } / shrink;
        passing.push(take(&mut engine, short, segment_bytes));
        // Some are freed at once, so that later blocks take their places.
        if n % 5 == 0 {
            engine.release(passing.swap_remove(n / 5)).unwrap();
        }
    }
    for block in passing {
        engine.release(block).unwrap();
    }
    engine.audit().unwrap();
    engine.take_idle(usize::MAX);
    assert!(engine.segments().all(|it| it.kind == SegmentKind::Small));
    (engine.segments().count(), kept.div_ceil(segment_bytes))
}

#[test]
fn once_large_blocks_go_only_what_small_ones_need_stays_pinned() {
    let (apart, needed) = segments_kept(1);
    assert_eq!(needed, 1);
    assert!(apart <= needed + 1, "{apart} stay pinned, {needed} are needed");
    // Divided by 32, all blocks are small and share segments, as without classes: each segment keeps a
    // few long-lived blocks.
    let (mixed, needed) = segments_kept(32);
    assert_eq!(needed, 1);
    assert!(mixed >= 10 * apart, "{mixed} stay pinned where classes keep {apart}");
}

#[test]
fn where_sizes_mix_a_block_takes_the_shortest_run_that_holds_it() {
    let config = Config { segment_bytes: GIB, threshold_bytes: 0 };
    let mut engine = Engine::new(config).mixing();
    let mut blocks: Vec<Block> = [300, 1, 100, 1].map(|it| take(&mut engine, it * MIB, GIB)).into();
    for at in [2, 0] {
        engine.release(blocks.remove(at)).unwrap();
        engine.audit().unwrap();
    }
    assert_eq!(take(&mut engine, 90 * MIB, GIB).offset, 301 * MIB);
    assert_eq!(take(&mut engine, 300 * MIB, GIB).offset, 0);
    assert_eq!(engine.stats().pinned_bytes.current, GIB as u64);
    engine.audit().unwrap();
}

#[test]
fn runs_by_length_are_those_of_the_records() {
    let config = Config { segment_bytes: GIB, threshold_bytes: 0 };
    let mut engine = Engine::new(config).mixing();
    let mut blocks = Vec::new();
    let mut state = 1_usize;
    for _ in 0..400 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let random = state >> 33;
        if blocks.len() > 30 || (random.is_multiple_of(3) && !blocks.is_empty()) {
            engine.release(blocks.swap_remove(random % blocks.len())).unwrap();
        } else {
            blocks.push(take(&mut engine, (1 + random % 40) * MIB / 4, GIB));
        }
        engine.audit().unwrap();
    }
}
