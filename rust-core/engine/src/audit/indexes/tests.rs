//! Broken regions, kinds and indexes, each of which the audit must see.

use super::super::tests::engine;
use super::*;
use crate::fill_order::Entry;
use crate::units::{Block, GRANULE, Granules, SegmentId};
use crate::{Config, Decision};

/// Two dedicated regions of 1000 granules, the first with a block; the audit finds nothing wrong.
fn dedicated() -> (Engine, [SegmentId; 2], Block) {
    let mut engine = Engine::new(Config {
        segment_bytes: GRANULE,
        threshold_bytes: 0,
    });
    let ids = [0x1000_0000, 0x2000_0000].map(|base| engine.adopt_region(base, 1000 * GRANULE));
    let Decision::Block(block) = engine.request(900 * GRANULE) else {
        panic!("there is room")
    };
    assert_eq!(block.segment, ids[0]);
    assert_eq!(engine.audit(), Ok(()));
    (engine, ids, block)
}

/// The entry of a dedicated region while it is idle.
fn fit(engine: &mut Engine, id: SegmentId) -> Fit {
    engine.arena.corrupt(id).fit(id.slot())
}

#[test]
fn overlapping_segments_are_seen() {
    let (mut engine, id) = engine();
    engine
        .arena
        .corrupt(id)
        .segment
        .corrupt_base(0x2000_0000 - 1);
    let violation = engine.audit().unwrap_err();
    assert!(
        matches!(violation, Violation::SegmentsOverlap { .. }),
        "{violation}"
    );
}

#[test]
fn a_wrong_fill_order_is_seen() {
    let (mut engine, _) = engine();
    engine.arena.here.order.corrupt_by_swapping(0, 1);
    assert_eq!(
        engine.audit(),
        Err(Violation::FillOrder {
            place: 1,
            what: "not sorted"
        })
    );
    let (mut engine, id) = self::engine();
    let stale = engine.arena.here.order.entries()[0];
    engine.request(GRANULE);
    engine.arena.here.order.update(0, stale);
    let violation = Violation::FillOrder {
        place: id.slot(),
        what: "a segment has no true entry",
    };
    assert_eq!(engine.audit(), Err(violation));
    let (mut engine, _) = self::engine();
    engine.arena.here.order.retain(|slot| slot == 0);
    let violation = Violation::FillOrder {
        place: 1,
        what: "a segment has no true entry",
    };
    assert_eq!(engine.audit(), Err(violation));
    let (mut engine, _) = self::engine();
    engine
        .arena
        .here
        .order
        .insert(Entry::new(1000, SegmentKind::Idle, 1000, 9, 9));
    let violation = Violation::FillOrder {
        place: 2,
        what: "an entry has no segment",
    };
    assert_eq!(engine.audit(), Err(violation));
}

#[test]
fn an_idle_dedicated_region_that_is_not_listed_is_seen() {
    let (mut engine, [_, idle], _) = dedicated();
    let entry = fit(&mut engine, idle);
    assert!(engine.arena.here.dedicated.remove(&entry));
    let violation = Violation::DedicatedIndex {
        slot: 1,
        what: "an idle dedicated region has no true entry",
    };
    assert_eq!(engine.audit(), Err(violation.clone()));
    // An entry of the wrong size does not count.
    engine.arena.here.dedicated.insert(Fit {
        granules: Granules::new(999),
        ..entry
    });
    assert_eq!(engine.audit(), Err(violation));
}

#[test]
fn a_dedicated_region_that_is_listed_and_not_idle_is_seen() {
    let (mut engine, [busy, _], block) = dedicated();
    let entry = fit(&mut engine, busy);
    engine.arena.here.dedicated.insert(entry);
    let violation = Violation::DedicatedIndex {
        slot: 0,
        what: "an entry is of no idle dedicated region",
    };
    assert_eq!(engine.audit(), Err(violation.clone()));
    engine.defer(block).unwrap(); // pending is not idle either
    assert_eq!(engine.audit(), Err(violation));
}

#[test]
fn a_second_entry_of_a_dedicated_region_is_seen() {
    let (mut engine, [_, idle], _) = dedicated();
    let entry = fit(&mut engine, idle);
    engine.arena.here.dedicated.insert(Fit { age: 7, ..entry });
    let violation = engine.audit().unwrap_err();
    let expected = matches!(violation, Violation::DedicatedIndex { slot: 1, .. });
    assert!(expected, "{violation}");
}

#[test]
fn a_dedicated_region_with_anything_but_one_block_at_its_start_is_seen() {
    let (mut engine, [busy, _], block) = dedicated();
    let segment = &mut engine.arena.corrupt(busy).segment;
    segment.take(Granules::new(1)).unwrap(); // a second one
    let violation = Violation::Kind {
        segment: busy,
        kind: SegmentKind::Dedicated,
    };
    assert_eq!(engine.audit(), Err(violation.clone()));
    let segment = &mut engine.arena.corrupt(busy).segment;
    segment.release(block).unwrap(); // only the second one, not at the start
    assert_eq!(engine.audit(), Err(violation));
}

#[test]
fn a_kind_that_is_not_true_is_seen() {
    use SegmentKind::{Dedicated, Idle, Large, Small};
    let kinds = [Small, Large, Idle, Dedicated];
    let wrong = |mut engine: Engine, segment: SegmentId, kind, allowed: &[SegmentKind]| {
        engine.arena.corrupt(segment).kind = kind;
        let is_seen = engine.audit() == Err(Violation::Kind { segment, kind });
        assert_eq!(is_seen, !allowed.contains(&kind), "{segment} as {kind:?}");
    };
    for kind in kinds {
        // Either class may be true of a segment in use: the order then has no true entry.
        let (in_use, segment) = engine();
        wrong(in_use, segment, kind, &[Small, Large]);
        let idle = engine().0;
        let segment = idle.segments().find(|view| view.kind == Idle).unwrap().id;
        wrong(idle, segment, kind, &[Idle]);
        let (engine, ids, _) = dedicated();
        wrong(engine, ids[0], kind, &[Dedicated]);
        let (engine, ids, _) = dedicated();
        wrong(engine, ids[1], kind, &[Dedicated]);
    }
}
