//! Which segment serves, which regions overlap, which are removed, and what an id means afterwards.

use super::*;
use crate::units::{GRANULE, Region};

const fn g(count: u32) -> Granules {
    Granules::new(count)
}

fn try_adopt(arena: &mut Arena, base: usize, bytes: usize) -> Result<SegmentId, AdoptError> {
    let segment = NewSegment::new(Region { base, bytes }).unwrap();
    arena.adopt(segment, false)
}

fn adopt(arena: &mut Arena, base: usize, granules: usize) -> SegmentId {
    try_adopt(arena, base, granules * GRANULE).unwrap()
}

fn adopt_dedicated(arena: &mut Arena, base: usize, granules: usize) -> SegmentId {
    let bytes = granules * GRANULE;
    let segment = NewSegment::new(Region { base, bytes }).unwrap();
    arena.adopt(segment, true).unwrap()
}

/// A block of the small class.
fn take(arena: &mut Arena, granules: u32) -> Option<Block> {
    arena.take(g(granules), Class::Small)
}

fn take_large(arena: &mut Arena, granules: u32) -> Option<Block> {
    arena.take(g(granules), Class::Large)
}

fn kind(arena: &mut Arena, id: SegmentId) -> SegmentKind {
    arena.slots.get_mut(id).unwrap().kind
}

/// The bases of the regions taken.
fn take_idle(arena: &mut Arena, at_least: usize) -> Vec<usize> {
    let idle = arena.take_idle(at_least);
    idle.iter().map(|segment| segment.region().base).collect()
}

#[test]
fn regions_that_overlap_are_refused() {
    let mut arena = Arena::default();
    let (base, bytes) = (0x10_0000, 4 * GRANULE);
    let segment = adopt(&mut arena, base, 4);
    let adopted = Region { base, bytes };
    // One byte at either end, inside, around, and the same again.
    for (base, bytes) in [
        (base - GRANULE, GRANULE + 1),
        (base + bytes - 1, GRANULE),
        (base + GRANULE, GRANULE),
        (base - GRANULE, bytes + 2 * GRANULE),
        (base, bytes),
    ] {
        let expected = AdoptError::Overlaps {
            region: Region { base, bytes },
            segment,
            adopted,
        };
        assert_eq!(try_adopt(&mut arena, base, bytes), Err(expected));
    }
    assert_eq!(arena.iter().count(), 1);
    adopt(&mut arena, base - GRANULE, 1); // neighbours are no overlap
    adopt(&mut arena, base + bytes, 1);
}

#[test]
fn the_tail_of_a_region_counts_for_overlaps() {
    let mut arena = Arena::default();
    try_adopt(&mut arena, GRANULE, GRANULE + 100).unwrap();
    let overlapping = try_adopt(&mut arena, 2 * GRANULE + 99, GRANULE);
    assert!(matches!(overlapping, Err(AdoptError::Overlaps { .. })));
    try_adopt(&mut arena, 2 * GRANULE + 100, GRANULE).unwrap();
}

#[test]
fn a_dedicated_region_counts_for_overlaps() {
    let mut arena = Arena::default();
    adopt_dedicated(&mut arena, GRANULE, 10);
    let overlapping = try_adopt(&mut arena, 10 * GRANULE, GRANULE);
    assert!(matches!(overlapping, Err(AdoptError::Overlaps { .. })));
}

#[test]
fn the_fullest_segment_that_fits_is_filled() {
    let mut arena = Arena::default();
    let first = adopt(&mut arena, 0x100_0000, 10);
    let second = adopt(&mut arena, 0x200_0000, 10);
    let third = adopt(&mut arena, 0x300_0000, 6);
    // All idle: the smallest one that holds it.
    assert_eq!(take(&mut arena, 5).unwrap().segment, third);
    // Not in the rest of the third: the oldest of the others.
    let block = take(&mut arena, 2).unwrap();
    assert_eq!(block.segment, first);
    // The third has least room, the second stays idle.
    assert_eq!(take(&mut arena, 1).unwrap().segment, third);
    assert_eq!(take(&mut arena, 8).unwrap().segment, first);
    assert_eq!(take(&mut arena, 10).unwrap().segment, second);
    assert_eq!(take(&mut arena, 1), None);
    arena.release(block).unwrap();
    assert_eq!(take(&mut arena, 2), Some(block));
}

#[test]
fn the_first_block_decides_the_class_until_the_last_is_gone() {
    let mut arena = Arena::default();
    let id = adopt(&mut arena, 0x100_0000, 10);
    assert_eq!(kind(&mut arena, id), SegmentKind::Idle);
    let first = take(&mut arena, 1).unwrap();
    let second = take(&mut arena, 1).unwrap();
    assert_eq!(kind(&mut arena, id), SegmentKind::Small);
    assert_eq!(take_large(&mut arena, 1), None);
    arena.release(first).unwrap();
    assert_eq!(take_large(&mut arena, 1), None);
    arena.defer(second).unwrap();
    assert_eq!(take_large(&mut arena, 1), None); // pending is not idle
    arena.release(second).unwrap();
    assert_eq!(kind(&mut arena, id), SegmentKind::Idle);
    let large = take_large(&mut arena, 1).unwrap();
    assert_eq!(kind(&mut arena, id), SegmentKind::Large);
    assert_eq!(take(&mut arena, 1), None);
    arena.release(large).unwrap();
    assert!(take(&mut arena, 1).is_some());
}

#[test]
fn anywhere_is_the_own_class_then_idle_then_the_other_class() {
    let mut arena = Arena::default();
    let small = adopt(&mut arena, 0x100_0000, 10);
    take(&mut arena, 2).unwrap();
    let large = adopt(&mut arena, 0x200_0000, 12);
    take_large(&mut arena, 2).unwrap();
    let idle = adopt(&mut arena, 0x300_0000, 9);
    let mut anywhere = |length| {
        let block = arena.take_anywhere(g(length), Class::Large)?;
        Some((block.segment, block.offset / GRANULE))
    };
    assert_eq!(anywhere(10), Some((large, 2)));
    assert_eq!(anywhere(8), Some((idle, 0))); // though the small one has room
    assert_eq!(anywhere(9), None);
    assert_eq!(anywhere(5), Some((small, 2)));
    // The guest changes no class, and the last one to leave ends it.
    assert_eq!(kind(&mut arena, small), SegmentKind::Small);
    assert_eq!(kind(&mut arena, idle), SegmentKind::Large);
    let guest = Block {
        segment: small,
        offset: 2 * GRANULE,
        bytes: 5 * GRANULE,
    };
    let host = Block {
        offset: 0,
        bytes: 2 * GRANULE,
        ..guest
    };
    arena.release(host).unwrap();
    assert_eq!(kind(&mut arena, small), SegmentKind::Small);
    assert!(take(&mut arena, 1).is_some_and(|block| block.segment == small));
    arena
        .release(Block {
            bytes: GRANULE,
            ..host
        })
        .unwrap();
    arena.release(guest).unwrap();
    assert_eq!(kind(&mut arena, small), SegmentKind::Idle);
}

#[test]
fn a_dedicated_region_serves_one_block_at_a_time_from_its_start() {
    let mut arena = Arena::default();
    let larger = adopt_dedicated(&mut arena, 0x100_0000, 110);
    let smaller = adopt_dedicated(&mut arena, 0x200_0000, 100);
    assert_eq!(take(&mut arena, 1), None);
    assert_eq!(arena.take_anywhere(g(1), Class::Large), None);
    let first = arena.take_dedicated(g(95), g(110)).unwrap();
    let place = (first.segment, first.offset, first.bytes);
    assert_eq!(place, (smaller, 0, 95 * GRANULE));
    let second = arena.take_dedicated(g(90), g(110)).unwrap();
    assert_eq!(second.segment, larger);
    // 5 and 20 granules are left, and serve nothing.
    assert_eq!(arena.take_dedicated(g(1), g(110)), None);
    assert_eq!(arena.slots.get_mut(larger).unwrap().longest(), 0);
    arena.defer(first).unwrap();
    assert_eq!(arena.take_dedicated(g(1), g(110)), None);
    arena.release(first).unwrap();
    assert_eq!(arena.take_dedicated(g(101), g(110)), None);
    assert_eq!(arena.take_dedicated(g(50), g(99)), None); // too large for it
    assert_eq!(arena.slots.get_mut(smaller).unwrap().longest(), 100);
    assert_eq!(kind(&mut arena, smaller), SegmentKind::Dedicated);
    assert_eq!(
        arena.take_dedicated(g(100), g(110)).unwrap().segment,
        smaller
    );
}

#[test]
fn misuse_of_a_dedicated_region_is_refused_and_changes_nothing() {
    let mut arena = Arena::default();
    let id = adopt_dedicated(&mut arena, 0x100_0000, 100);
    let block = arena.take_dedicated(g(90), g(100)).unwrap();
    let size = Block {
        bytes: GRANULE,
        ..block
    };
    let offset = Block {
        offset: GRANULE,
        ..block
    };
    for wrong in [size, offset] {
        assert!(arena.release(wrong).is_err() && arena.defer(wrong).is_err());
        assert_eq!(arena.here.dedicated.iter().count(), 0);
    }
    arena.release(block).unwrap();
    let twice = Err(Misuse::NotABlock {
        segment: id,
        offset: 0,
    });
    assert_eq!(arena.release(block).map(drop), twice);
    assert_eq!(arena.defer(block), twice);
    assert_eq!(arena.here.dedicated.iter().count(), 1);
    take_idle(&mut arena, usize::MAX);
    let unknown = Err(Misuse::UnknownSegment { segment: id });
    assert_eq!(arena.release(block).map(drop), unknown);
}

#[test]
fn an_id_dies_with_its_segment() {
    let mut arena = Arena::default();
    let first = adopt(&mut arena, 0x100_0000, 10);
    let block = take(&mut arena, 1).unwrap();
    arena.release(block).unwrap();
    assert_eq!(take_idle(&mut arena, usize::MAX), [0x100_0000]);
    let second = adopt(&mut arena, 0x100_0000, 10);
    let again = take(&mut arena, 1).unwrap();
    assert_ne!(first, second);
    assert_eq!((again.offset, again.bytes), (block.offset, block.bytes));
    // The old id has the slot of another segment now.
    let unknown = Err(Misuse::UnknownSegment { segment: first });
    assert_eq!(arena.release(block).map(drop), unknown);
    assert_eq!(arena.defer(block), unknown);
    assert!(arena.get(first).is_none());
    let never = SegmentId::from_u32(u32::MAX);
    let claim = Block {
        segment: never,
        ..again
    };
    assert!(arena.release(claim).is_err());
    arena.release(again).unwrap();
}

#[test]
fn a_segment_with_a_pending_block_is_not_idle() {
    let mut arena = Arena::default();
    adopt(&mut arena, 0x100_0000, 10);
    adopt(&mut arena, 0x200_0000, 20);
    let block = take(&mut arena, 15).unwrap();
    arena.defer(block).unwrap();
    assert_eq!(take_idle(&mut arena, usize::MAX), [0x100_0000]);
    arena.release(block).unwrap();
    let idle = arena.take_idle(usize::MAX);
    let expected = Region {
        base: 0x200_0000,
        bytes: 20 * GRANULE,
    };
    assert_eq!((idle[0].region(), idle.len()), (expected, 1));
    assert!(!idle[0].is_dedicated());
    assert_eq!(take_idle(&mut arena, usize::MAX), []);
}

#[test]
fn no_more_is_unpinned_than_asked_for_dedicated_and_oldest_first() {
    let mut arena = Arena::default();
    // A large old one, a dedicated one, a small one, a busy one, and another dedicated one.
    adopt(&mut arena, 0x100_0000, 30);
    adopt_dedicated(&mut arena, 0x200_0000, 50);
    adopt(&mut arena, 0x300_0000, 10);
    adopt(&mut arena, 0x400_0000, 5);
    adopt_dedicated(&mut arena, 0x500_0000, 40);
    let busy = take(&mut arena, 5).unwrap();
    assert_eq!(take_idle(&mut arena, 0), []);
    assert_eq!(take_idle(&mut arena, 1), [0x200_0000]);
    let idle = arena.take_idle(40 * GRANULE);
    assert_eq!((idle[0].region().base, idle.len()), (0x500_0000, 1));
    assert!(idle[0].is_dedicated());
    adopt_dedicated(&mut arena, 0x600_0000, 40);
    assert_eq!(
        take_idle(&mut arena, 40 * GRANULE + 1),
        [0x600_0000, 0x100_0000]
    );
    assert_eq!(take_idle(&mut arena, usize::MAX), [0x300_0000]);
    assert_eq!(
        (arena.here.order.entries().len(), arena.iter().count()),
        (1, 1)
    );
    arena.release(busy).unwrap();
    assert_eq!(take_idle(&mut arena, usize::MAX), [0x400_0000]);
}

#[test]
fn the_end_of_a_region_that_is_no_granule_counts_as_unpinned() {
    let mut arena = Arena::default();
    try_adopt(&mut arena, 0x100_0000, GRANULE + 100).unwrap();
    adopt(&mut arena, 0x200_0000, 1);
    assert_eq!(take_idle(&mut arena, GRANULE + 100), [0x100_0000]);
}
