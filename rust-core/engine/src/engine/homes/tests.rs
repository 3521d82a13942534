//! Requests of two homes, on numbers.

use crate::units::{Block, GRANULE, Home, Region};
use crate::{Cached, Config, Decision, Engine, NewSegment};

const NEAR: Home = Home(0);
const FAR: Home = Home(1);

/// An idle segment of a hundred granules at each home, and a longer region of each.
fn engine() -> Engine {
    let mut engine = Engine::new(Config {
        segment_bytes: 100 * GRANULE,
        threshold_bytes: 0,
    });
    for (base, granules, home) in [
        (0x1000_0000, 100, NEAR),
        (0x2000_0000, 100, FAR),
        (0x3000_0000, 200, NEAR),
        (0x4000_0000, 200, FAR),
    ] {
        let bytes = granules * GRANULE;
        let segment = NewSegment::new(Region { base, bytes }).unwrap();
        engine.adopt(segment.at(home)).unwrap();
    }
    engine
}

fn block(engine: &mut Engine, granules: usize) -> Option<Block> {
    match engine.request(granules * GRANULE) {
        Decision::Block(block) => Some(block),
        _ => None,
    }
}

/// The address of a block, without its offset in a region.
fn region(engine: &Engine, block: Option<Block>) -> Option<usize> {
    Some(engine.address(block?) & !0x0fff_ffff)
}

#[test]
fn a_request_gets_memory_of_its_own_home_alone() {
    let mut engine = engine();
    for (home, short, long) in [
        (FAR, 0x2000_0000, 0x4000_0000),
        (NEAR, 0x1000_0000, 0x3000_0000),
    ] {
        engine.turn_to(home);
        let first = block(&mut engine, 60);
        assert_eq!(region(&engine, first), Some(short));
        let beside = engine.request_beside(GRANULE, Cached::default());
        assert_eq!(region(&engine, beside), Some(short));
        let dedicated = block(&mut engine, 200);
        assert_eq!(region(&engine, dedicated), Some(long));
        assert_eq!(
            (block(&mut engine, 60), block(&mut engine, 200)),
            (None, None)
        );
        assert_eq!(engine.request_beside(60 * GRANULE, Cached::default()), None);
    }
    engine.audit().unwrap();
}

#[test]
fn memory_elsewhere_is_another_homes_and_counts_there() {
    let mut engine = engine();
    engine.turn_to(FAR);
    let first = block(&mut engine, 80).unwrap();
    let stolen = engine.request_elsewhere(80 * GRANULE);
    assert_eq!(region(&engine, stolen), Some(0x1000_0000));
    assert_eq!(engine.request_elsewhere(80 * GRANULE), None);
    let long = engine.request_elsewhere(150 * GRANULE);
    assert_eq!(region(&engine, long), Some(0x3000_0000));
    let active: Vec<u64> = engine.demands.iter().map(|it| it.1.active).collect();
    assert_eq!(active, [230, 80].map(|granules| granules * GRANULE as u64));
    // It is still the turn of the same home, and a block goes back to where it lies.
    assert_eq!(engine.release(first), Ok(()));
    assert_eq!(engine.release(stolen.unwrap()), Ok(()));
    let again = block(&mut engine, 80);
    assert_eq!(region(&engine, again), Some(0x2000_0000));
    engine.audit().unwrap();
}

/// What one home needs is not what the other needed a moment ago.
#[test]
fn homes_that_take_turns_need_both_their_sets() {
    let mut engine = engine();
    for home in [NEAR, FAR] {
        engine.turn_to(home);
        let first = block(&mut engine, 50).unwrap();
        engine.release(first).unwrap();
    }
    assert_eq!(engine.largest_set(), 100 * GRANULE);
    assert_eq!(engine.set_with(70 * GRANULE), 120 * GRANULE);
    assert_eq!(engine.rival_bytes(0), 2 * 64 * GRANULE);
    assert_eq!(engine.rival().count, 2);
    engine.forget_largest_set();
    assert_eq!((engine.largest_set(), engine.rival_bytes(0)), (0, 0));
}

/// A block that was cached at the last request may be in use by now, without a word.
#[test]
fn what_another_home_has_cached_counts_as_in_use() {
    let mut engine = engine();
    block(&mut engine, 50).unwrap();
    let cached = Cached {
        bytes: 50 * GRANULE,
        alike: 0,
    };
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
    assert_eq!(
        (engine.ready_at(FAR), engine.ready_at(NEAR)),
        (100 * GRANULE, 300 * GRANULE)
    );
    engine.audit().unwrap();
    assert_eq!(engine.take_idle(usize::MAX).len(), 3);
    assert_eq!(engine.take_leaving(usize::MAX, usize::MAX).len(), 1);
    assert_eq!(
        (
            engine.ready_at(FAR),
            engine.ready_at(NEAR),
            engine.ready_at(Home(9))
        ),
        (0, 0, 0)
    );
    engine.audit().unwrap();
}
