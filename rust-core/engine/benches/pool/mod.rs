//! Engines on made-up addresses, for benchmarks.

use std::hint::black_box;

use pinbuddy_core::{Block, Config, Decision, Engine, NewSegment, Region};

/// An engine with `count` idle segments.
pub(crate) fn engine(segment_bytes: usize, count: usize) -> Engine {
    let mut engine = Engine::new(Config {
        segment_bytes,
        threshold_bytes: 0,
    });
    (0..count).for_each(|_| adopt(&mut engine, segment_bytes));
    engine
}

/// One more segment, behind the others.
pub(crate) fn adopt(engine: &mut Engine, bytes: usize) {
    let base = (1 << 40) + engine.stats().pinned_bytes.current as usize;
    let segment = NewSegment::new(Region { base, bytes }).expect("a region");
    engine.adopt(segment).expect("room for one more");
}

/// A block that the engine has.
pub(crate) fn take(engine: &mut Engine, bytes: usize) -> Block {
    match engine.request(black_box(bytes)) {
        Decision::Block(block) => block,
        other => panic!("{bytes} bytes: {other:?}"),
    }
}
