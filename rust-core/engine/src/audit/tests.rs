//! Broken states, each of which the audit must see; a program with assertions ends there.

use super::*;
use crate::Config;
use crate::dedicated::Fit;
use crate::engine::tests::block;
use crate::fill_order::Entry;
use crate::units::{Block, GRANULE, Granules, Home};

type Break = fn(&mut Engine, SegmentId);

/// How each defect comes into [`engine`].
const DEFECTS: [(&str, Break); 30] = [
    ("a block that was freed twice", |engine, id| tree(engine, id).free(10..30)),
    ("memory that nobody has and nobody gets", |engine, id| tree(engine, id).take(500..600)),
    ("a free granule past the segment's end", |engine, id| tree(engine, id).free(1000..1001)),
    ("a block in another", |engine, id| set(engine, id, 5, 20)),
    ("a block past the segment's end", |engine, id| set(engine, id, 990, 20)),
    ("free buddies that did not merge", |engine, id| {
        // The root and its first half must be mixed; at 256..512 nothing is taken.
        in_use(engine, id, &[100, 600]);
        tree(engine, id).corrupt_unmerge(256);
    }),
    ("a node that is mixed for nothing", |engine, id| tree(engine, id).corrupt_unmerge(0)),
    ("a wrong longest run", |engine, id| set_sums(engine, id, 800, 0, 0)),
    ("a wrong prefix", |engine, id| set_sums(engine, id, 799, 1, 0)),
    ("a wrong suffix", |engine, id| set_sums(engine, id, 799, 0, 1)),
    ("a lost record", |engine, id| segment(engine, id).records.clear(g(0))),
    ("a granule too many", |engine, id| segment(engine, id).live.granules += 1),
    ("a pending block that is no longer counted", |engine, id| segment(engine, id).pending = Tally::default()),
    ("pending granules that are no longer counted", |engine, id| segment(engine, id).pending.granules = 0),
    ("a pending block that is recorded as live", |engine, id| set(engine, id, 10, 20)),
    ("segments that overlap", |engine, id| segment(engine, id).corrupt_base(0x2000_0000 - 1)),
    ("an order that is not sorted", |engine, _| engine.arena.here.order.corrupt_by_swapping(0, 1)),
    ("an order that missed a block", |engine, _| {
        let stale = engine.arena.here.order.entries()[0];
        engine.request(GRANULE);
        engine.arena.here.order.update(0, stale);
    }),
    ("an order without a segment", |engine, _| engine.arena.here.order.retain(|slot| slot == 0)),
    ("an order with a segment too many", |engine, _| {
        let entry = Entry::new(1000, SegmentKind::Idle, 1000, 9, 9);
        engine.arena.here.order.insert(entry);
    }),
    ("a segment in another home's order", |engine, id| segment(engine, id).home = Home(1)),
    ("a home that missed a block", |engine, _| engine.demands.of_mut(Home::default()).active -= GRANULE as u64),
    ("a home with a segment too many", |engine, _| engine.demands.of_mut(Home::default()).pinned += 1),
    ("statistics that missed a block", |engine, _| engine.stats.active_bytes.current -= GRANULE as u64),
    ("statistics with a block too many", |engine, _| engine.stats.active_blocks.current += 1),
    ("statistics with a pinned byte too many", |engine, _| engine.stats.pinned_bytes.current += 1),
    ("statistics with a segment too many", |engine, _| engine.stats.segments.current += 1),
    ("statistics that missed a pending byte", |engine, _| engine.stats.pending_bytes.current -= 1),
    ("statistics that missed a pending block", |engine, _| engine.stats.pending_blocks.current = 0),
    ("statistics with a dedicated byte", |engine, _| engine.stats.dedicated_bytes = 1),
];

/// What is found of each.
const FOUND: &str = "\
a block that was freed twice: I1: granule 10 of segment 0.0: free in the tree true, in no block false
memory that nobody has and nobody gets: I1: granule 500 of segment 0.0: free in the tree false, in no block true
a free granule past the segment's end: I1: granule 1000 of segment 0.0: free in the tree true, in no block false
a block in another: I2: the block at granule 5 of segment 0.0 overlaps the one that ends at 10
a block past the segment's end: I2: a block ends at granule 1010 of segment 0.0, which has 1000
free buddies that did not merge: I3: the node at granule 256, length 256, of segment 0.0: mixed is 1, not 0
a node that is mixed for nothing: I3: the node at granule 0, length 1024, of segment 0.0: mixed is 1, not 0
a wrong longest run: I3: the node at granule 0, length 1024, of segment 0.0: longest is 800, not 799
a wrong prefix: I3: the node at granule 0, length 1024, of segment 0.0: prefix is 1, not 0
a wrong suffix: I3: the node at granule 0, length 1024, of segment 0.0: suffix is 1, not 0
a lost record: I8: live blocks of segment 0.0: 1, counted 0
a granule too many: I8: live granules of segment 0.0: 11, counted 10
a pending block that is no longer counted: I8: pending blocks of segment 0.0: 0, counted 1
pending granules that are no longer counted: I8: pending granules of segment 0.0: 0, counted 20
a pending block that is recorded as live: I8: live blocks of segment 0.0: 1, counted 2
segments that overlap: I2: segments 0.0 and 1.0 overlap
an order that is not sorted: the fill order is wrong at place 1: not sorted
an order that missed a block: the fill order is wrong at place 0: a segment has no true entry
an order without a segment: the fill order is wrong at place 1: a segment has no true entry
an order with a segment too many: the fill order is wrong at place 2: an entry has no segment
a segment in another home's order: the fill order is wrong at place 0: a segment has no true entry
a home that missed a block: I8: active bytes of a home: 118784, counted 122880
a home with a segment too many: I8: pinned bytes of a home: 8192006, counted 8192005
statistics that missed a block: I8: active bytes: 118784, counted 122880
statistics with a block too many: I8: active blocks: 3, counted 2
statistics with a pinned byte too many: I8: pinned bytes: 8192006, counted 8192005
statistics with a segment too many: I8: segments: 3, counted 2
statistics that missed a pending byte: I8: pending bytes: 81919, counted 81920
statistics that missed a pending block: I8: pending blocks: 0, counted 1
statistics with a dedicated byte: I8: dedicated bytes: 1, counted 0";

/// How each comes into [`dedicated`], by the first of its regions, which has a block.
const DEDICATED: [(&str, Break); 7] = [
    ("an idle dedicated region that is not listed", |engine, _| {
        unlist(engine);
    }),
    ("a dedicated region of another size", |engine, _| {
        let granules = g(999);
        let entry = unlist(engine);
        engine.arena.here.dedicated.insert(Fit { granules, ..entry });
    }),
    ("a dedicated region that is listed twice", |engine, _| {
        let entry = unlist(engine);
        for age in [entry.age, 7] {
            engine.arena.here.dedicated.insert(Fit { age, ..entry });
        }
    }),
    ("a dedicated region that is listed and in use", list),
    ("a dedicated region that is listed and pending", |engine, id| {
        list(engine, id);
        engine.defer(first_block(id)).unwrap();
    }),
    ("two blocks in a dedicated region", |engine, id| {
        segment(engine, id).take(g(1)).unwrap();
    }),
    ("a block behind a dedicated region's start", |engine, id| {
        segment(engine, id).take(g(1)).unwrap();
        segment(engine, id).release(first_block(id)).unwrap();
    }),
];

/// What is found of each.
const FOUND_DEDICATED: &str = "\
an idle dedicated region that is not listed: the dedicated index is wrong about slot 1: an idle dedicated region has no true entry
a dedicated region of another size: the dedicated index is wrong about slot 1: an idle dedicated region has no true entry
a dedicated region that is listed twice: the dedicated index is wrong about slot 1: an entry is of no idle dedicated region
a dedicated region that is listed and in use: the dedicated index is wrong about slot 0: an entry is of no idle dedicated region
a dedicated region that is listed and pending: the dedicated index is wrong about slot 0: an entry is of no idle dedicated region
two blocks in a dedicated region: segment 0.0 is not what its kind says: Dedicated
a block behind a dedicated region's start: segment 0.0 is not what its kind says: Dedicated";

const fn g(count: u32) -> Granules {
    Granules::new(count)
}

/// Two segments of 1000 granules, the first with a live block at 0..10 and a pending one at
/// 10..30; the audit finds nothing wrong.
fn engine() -> (Engine, SegmentId) {
    let mut engine = Engine::new(Config { segment_bytes: 1000 * GRANULE, threshold_bytes: 0 });
    engine.adopt_region(0x1000_0000, 1000 * GRANULE);
    engine.adopt_region(0x2000_0000, 1000 * GRANULE + 5);
    let (live, pending) = (take(&mut engine, 10), take(&mut engine, 20));
    engine.defer(pending).unwrap();
    assert_eq!(engine.audit(), Ok(()));
    (engine, live.segment)
}

/// Two dedicated regions of 1000 granules, the first with a block; the audit finds nothing wrong.
fn dedicated() -> (Engine, SegmentId) {
    let mut engine = Engine::new(Config { segment_bytes: GRANULE, threshold_bytes: 0 });
    let ids = [0x1000_0000, 0x2000_0000].map(|base| engine.adopt_region(base, 1000 * GRANULE));
    assert_eq!(take(&mut engine, 900), first_block(ids[0]));
    assert_eq!(engine.audit(), Ok(()));
    (engine, ids[0])
}

fn take(engine: &mut Engine, granules: usize) -> Block {
    block(engine, granules * GRANULE)
}

/// The block of [`dedicated`].
fn first_block(segment: SegmentId) -> Block {
    Block { segment, offset: 0, bytes: 900 * GRANULE }
}

fn segment(engine: &mut Engine, id: SegmentId) -> &mut Segment {
    &mut engine.arena.corrupt(id).segment
}

fn tree(engine: &mut Engine, id: SegmentId) -> &mut BuddyTree {
    match &mut segment(engine, id).space {
        Space::Leftmost(tree) => tree,
        Space::Shortest(_) => panic!("the segment has no tree"),
    }
}

/// Records a live block, and changes nothing else.
fn set(engine: &mut Engine, id: SegmentId, start: u32, length: u32) {
    let records = &mut segment(engine, id).records;
    records.set(g(start), g(length), State::Live);
}

/// Blocks of one granule there, rightly.
fn in_use(engine: &mut Engine, id: SegmentId, starts: &[u32]) {
    for &start in starts {
        tree(engine, id).take(start..start + 1);
        set(engine, id, start, 1);
        segment(engine, id).live.add(g(1));
    }
}

/// Other sums of the root, of which it has 799, 0 and 0.
fn set_sums(engine: &mut Engine, id: SegmentId, longest: u32, prefix: u32, suffix: u32) {
    // Two more blocks make the root mixed: then its children describe the granules, and its sums
    // are only sums. Unbroken, its longest run is 201..1000.
    in_use(engine, id, &[100, 200]);
    let root = tree(engine, id).corrupt_root();
    *root = root.corrupt_sums(longest, prefix, suffix);
}

/// The entry of the idle dedicated region, which is no longer listed.
fn unlist(engine: &mut Engine) -> Fit {
    let entry = *engine.arena.here.dedicated.iter().next().unwrap();
    assert!(engine.arena.here.dedicated.remove(&entry));
    entry
}

/// Lists a dedicated region as idle.
fn list(engine: &mut Engine, id: SegmentId) {
    let entry = engine.arena.corrupt(id).fit(id.slot());
    engine.arena.here.dedicated.insert(entry);
}

/// Breaks a scene in each way, and compares what is found.
fn check(scene: fn() -> (Engine, SegmentId), defects: &[(&str, Break)], found: &str) {
    assert_eq!(defects.len(), found.lines().count());
    for ((name, break_it), expected) in defects.iter().zip(found.lines()) {
        let (mut engine, id) = scene();
        break_it(&mut engine, id);
        let found = engine.audit().map_or_else(|it| it.to_string(), |()| "nothing".to_owned());
        assert_eq!(format!("{name}: {found}"), expected);
    }
}

#[test]
fn each_defect_is_found() {
    check(engine, &DEFECTS, FOUND);
    check(dedicated, &DEDICATED, FOUND_DEDICATED);
}

#[test]
fn a_kind_that_is_not_true_is_seen() {
    use SegmentKind::{Dedicated, Idle, Large, Small};
    let wrong = |(mut engine, segment): (Engine, SegmentId), kind, allowed: &[SegmentKind]| {
        engine.arena.corrupt(segment).kind = kind;
        let is_seen = engine.audit() == Err(Violation::Kind { segment, kind });
        assert_eq!(is_seen, !allowed.contains(&kind), "{segment} as {kind:?}");
    };
    let other = |(engine, first): (Engine, SegmentId)| {
        let second = engine.segments().find(|view| view.id != first).unwrap().id;
        (engine, second)
    };
    for kind in [Small, Large, Idle, Dedicated] {
        // Either class may be true of a segment in use: the order then has no true entry.
        wrong(engine(), kind, &[Small, Large]);
        wrong(other(engine()), kind, &[Idle]);
        wrong(dedicated(), kind, &[Dedicated]);
        wrong(other(dedicated()), kind, &[Dedicated]);
    }
}

#[test]
fn a_run_is_counted_at_both_ends() {
    let free = [true, true, false, true, false, false, true];
    let sums = |longest, prefix, suffix, mixed| Sums { longest, prefix, suffix, mixed };
    assert_eq!(count(&free), sums(2, 2, 1, true));
    assert_eq!(count(&free[1..]), sums(1, 1, 1, true));
    assert_eq!(count(&free[2..6]), sums(1, 0, 0, false));
    assert_eq!(count(&[true; 5]), sums(5, 5, 5, false));
    assert_eq!(count(&[false; 5]), sums(0, 0, 0, false));
    assert_eq!(runs(&free).collect::<Vec<_>>(), [(0, 2), (3, 4), (6, 7)]);
}
