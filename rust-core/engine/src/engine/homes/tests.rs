//! Requests of two homes, on numbers.

use crate::engine::tests::block;
use crate::units::{GRANULE, Home, Region};
use crate::{Cached, Config, Engine, NewSegment};

const NEAR: Home = Home(0);
const FAR: Home = Home(1);

/// An idle segment of a hundred granules at each home, and a longer region of each.
fn engine() -> Engine {
    let mut engine = Engine::new(Config { segment_bytes: 100 * GRANULE, threshold_bytes: 0 });
    for (base, granules, home) in
        [(0x1000_0000, 100, NEAR), (0x2000_0000, 100, FAR), (0x3000_0000, 200, NEAR), (0x4000_0000, 200, FAR)]
    {
        let bytes = granules * GRANULE;
        let segment = NewSegment::new(Region { base, bytes }).unwrap();
        engine.adopt(segment.at(home)).unwrap();
    }
    engine
}

/// What one home needs is not what the other needed a moment ago.
#[test]
fn homes_that_take_turns_need_both_their_sets() {
    let mut engine = engine();
    for home in [NEAR, FAR] {
        engine.turn_to(home);
        let first = block(&mut engine, 50 * GRANULE);
        engine.release(first).unwrap();
    }
    assert_eq!(engine.largest_set(), 100 * GRANULE);
    assert_eq!(engine.set_with(70 * GRANULE), 120 * GRANULE);
    assert_eq!(engine.rival_bytes(0), 2 * 64 * GRANULE);
    assert_eq!(engine.rival().count, 2);
    engine.cleared();
    assert_eq!((engine.largest_set(), engine.rival_bytes(0)), (0, 0));
}

/// A block that was cached at the last request may be in use by now, without a word.
#[test]
fn what_another_home_has_cached_counts_as_in_use() {
    let mut engine = engine();
    block(&mut engine, 50 * GRANULE);
    let cached = Cached { bytes: 50 * GRANULE, alike: 0 };
    engine.request_beside(30 * GRANULE, cached).unwrap();
    assert_eq!(engine.largest_set(), 50 * GRANULE);
    engine.turn_to(FAR);
    assert_eq!(engine.set_with(10 * GRANULE), (50 + 30 + 10) * GRANULE);
}

#[test]
fn idle_memory_of_all_homes_goes_at_once() {
    let mut engine = engine();
    engine.turn_to(FAR);
    assert!(engine.has_idle_between(150 * GRANULE, 250 * GRANULE));
    assert!(engine.let_go_idle_between(150 * GRANULE, 250 * GRANULE));
    let gone: Vec<usize> = engine.leaving().iter().map(|it| it.region().base).collect();
    assert_eq!(gone, [0x4000_0000], "it is the far home's turn");
    assert!(!engine.has_idle_between(150 * GRANULE, 250 * GRANULE));
    assert_eq!((engine.ready_at(FAR), engine.ready_at(NEAR)), (100 * GRANULE, 300 * GRANULE));
    engine.audit().unwrap();
    assert_eq!(engine.take_idle(usize::MAX).len(), 3);
    assert_eq!(engine.take_leaving(usize::MAX, usize::MAX).len(), 1);
    assert_eq!((engine.ready_at(FAR), engine.ready_at(NEAR), engine.ready_at(Home(9))), (0, 0, 0));
    engine.audit().unwrap();
}
