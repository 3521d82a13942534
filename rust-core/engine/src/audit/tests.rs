//! Broken states, each of which the audit must see.

use super::*;
use crate::units::{Block, GRANULE, Granules};
use crate::{Config, Decision};

const fn g(count: u32) -> Granules {
    Granules::new(count)
}

/// Two segments of 1000 granules, the first with a live block at 0..10 and a pending one at
/// 10..30; the audit finds nothing wrong.
pub(super) fn engine() -> (Engine, SegmentId) {
    let mut engine = Engine::new(Config {
        segment_bytes: 1000 * GRANULE,
        threshold_bytes: 0,
    });
    engine.adopt_region(0x1000_0000, 1000 * GRANULE);
    engine.adopt_region(0x2000_0000, 1000 * GRANULE + 5);
    let mut take = |granules| match engine.request(granules * GRANULE) {
        Decision::Block(block) => block,
        other => panic!("{other:?}"),
    };
    let (live, pending): (Block, Block) = (take(10), take(20));
    engine.defer(pending).unwrap();
    assert_eq!(engine.audit(), Ok(()));
    (engine, live.segment)
}

/// The violation that the audit finds after `break_it` on the first segment.
fn broken(break_it: impl FnOnce(&mut Segment)) -> Violation {
    let (mut engine, id) = engine();
    break_it(&mut engine.arena.corrupt(id).segment);
    engine.audit().expect_err("the audit sees nothing")
}

pub(super) fn tree(segment: &mut Segment) -> &mut BuddyTree {
    match &mut segment.space {
        Space::Leftmost(tree) => tree,
        Space::Shortest(_) => panic!("the segment has no tree"),
    }
}

#[test]
fn a_granule_both_free_and_in_a_block_is_seen() {
    let violation = broken(|segment| tree(segment).free(5..6));
    assert!(
        matches!(
            violation,
            Violation::Ownership {
                granule: 5,
                tree: true,
                ..
            }
        ),
        "{violation}"
    );
}

#[test]
fn a_granule_neither_free_nor_in_a_block_is_seen() {
    let violation = broken(|segment| tree(segment).take(999..1000));
    assert!(
        matches!(
            violation,
            Violation::Ownership {
                granule: 999,
                tree: false,
                ..
            }
        ),
        "{violation}"
    );
}

#[test]
fn a_free_granule_beyond_the_end_is_seen() {
    let violation = broken(|segment| tree(segment).free(1000..1001));
    assert!(
        matches!(violation, Violation::Ownership { granule: 1000, .. }),
        "{violation}"
    );
}

#[test]
fn overlapping_blocks_are_seen() {
    let violation = broken(|segment| segment.records.set(g(9), g(1), State::Live));
    assert!(
        matches!(
            violation,
            Violation::BlocksOverlap {
                granule: 9,
                end: 10,
                ..
            }
        ),
        "{violation}"
    );
}

#[test]
fn a_block_that_leaves_its_segment_is_seen() {
    let violation = broken(|segment| segment.records.set(g(999), g(2), State::Live));
    assert!(
        matches!(violation, Violation::BlockLeavesSegment { end: 1001, .. }),
        "{violation}"
    );
}

#[test]
fn a_lost_record_and_wrong_counts_are_seen() {
    let count = |violation| match violation {
        Violation::SegmentCount { what, .. } => what,
        other => panic!("{other}"),
    };
    assert_eq!(
        count(broken(|segment| segment.records.clear(g(0)))),
        "live blocks"
    );
    assert_eq!(
        count(broken(|segment| segment.live.granules += 1)),
        "live granules"
    );
    assert_eq!(
        count(broken(|segment| segment.pending.blocks = 0)),
        "pending blocks"
    );
    assert_eq!(
        count(broken(|segment| segment.pending.granules = 0)),
        "pending granules"
    );
    let as_live = |segment: &mut Segment| segment.records.set(g(10), g(20), State::Live);
    assert_eq!(count(broken(as_live)), "live blocks");
}

#[test]
fn free_buddies_that_did_not_merge_are_seen() {
    // The buddy at 256..512 is free, so the tree must not show parts of it.
    let violation = broken(|segment| tree(segment).corrupt_unmerge(256));
    assert!(
        matches!(
            violation,
            Violation::NotMerged {
                found: Some((256, 6)),
                expected: Some((256, 8)),
                ..
            }
        ),
        "{violation}"
    );
}

#[test]
fn a_wrong_sum_is_seen() {
    for (expected, longest, prefix, suffix) in [
        ("longest", 800, 0, 0),
        ("prefix", 799, 1, 0),
        ("suffix", 799, 0, 1),
    ] {
        let violation = broken(|segment| {
            // Two more blocks make the root mixed: then its children describe the granules, and its sums
            // are only sums. Unbroken, its longest run is 201..1000.
            for start in [100, 200] {
                tree(segment).take(start..start + 1);
                segment.records.set(g(start), g(1), State::Live);
                segment.live.add(g(1));
            }
            let root = tree(segment).corrupt_root();
            *root = root.corrupt_sums(longest, prefix, suffix);
        });
        match violation {
            Violation::Summary {
                granule: 0,
                length: 1024,
                what,
                ..
            } => assert_eq!(what, expected),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_node_that_is_needlessly_mixed_is_seen() {
    let violation = broken(|segment| tree(segment).corrupt_unmerge(0));
    assert!(
        matches!(violation, Violation::Summary { what: "mixed", .. }),
        "{violation}"
    );
}

#[test]
fn each_wrong_statistic_is_seen() {
    type Break = fn(&mut crate::Stats);
    let breaks: [(&str, Break); 7] = [
        ("pinned bytes", |stats| stats.pinned_bytes.current += 1),
        ("segments", |stats| stats.segments.current += 1),
        ("active bytes", |stats| stats.active_bytes.current -= 1),
        ("active blocks", |stats| stats.active_blocks.current += 1),
        ("pending bytes", |stats| stats.pending_bytes.current -= 1),
        ("pending blocks", |stats| stats.pending_blocks.current = 0),
        ("dedicated bytes", |stats| stats.dedicated_bytes = 1),
    ];
    for (expected, break_it) in breaks {
        let (mut engine, _) = engine();
        break_it(&mut engine.stats);
        match engine.audit().unwrap_err() {
            Violation::Statistic { what, .. } => assert_eq!(what, expected),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_run_is_counted_at_both_ends() {
    let free = [true, true, false, true, false, false, true];
    let sums = |longest, prefix, suffix, mixed| Sums {
        longest,
        prefix,
        suffix,
        mixed,
    };
    assert_eq!(count(&free), sums(2, 2, 1, true));
    assert_eq!(count(&free[1..]), sums(1, 1, 1, true));
    assert_eq!(count(&free[2..6]), sums(1, 0, 0, false));
    assert_eq!(count(&[true; 5]), sums(5, 5, 5, false));
    assert_eq!(count(&[false; 5]), sums(0, 0, 0, false));
    assert_eq!(runs(&free).collect::<Vec<_>>(), [(0, 2), (3, 4), (6, 7)]);
}
