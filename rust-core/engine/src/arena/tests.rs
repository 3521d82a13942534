//! Which regions overlap, and what false claims are told. Which segment serves, and which are removed, `tests/model` says.

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
        let expected = AdoptError::Overlaps { region: Region { base, bytes }, segment, adopted };
        assert_eq!(try_adopt(&mut arena, base, bytes), Err(expected));
    }
    assert_eq!(arena.iter().count(), 1);
    adopt(&mut arena, base - GRANULE, 1); // neighbours are no overlap
    adopt(&mut arena, base + bytes, 1);
}

#[test]
fn misuse_of_a_dedicated_region_is_refused_and_changes_nothing() {
    let mut arena = Arena::default();
    let id = adopt_dedicated(&mut arena, 0x100_0000, 100);
    let block = arena.take_dedicated(g(90), g(100)).unwrap();
    let size = Block { bytes: GRANULE, ..block };
    let offset = Block { offset: GRANULE, ..block };
    for wrong in [size, offset] {
        assert!(arena.release(wrong).is_err() && arena.defer(wrong).is_err());
        assert_eq!(arena.here.dedicated.iter().count(), 0);
    }
    arena.release(block).unwrap();
    let twice = Err(Misuse::NotABlock { segment: id, offset: 0 });
    assert_eq!(arena.release(block).map(drop), twice);
    assert_eq!(arena.defer(block), twice);
    assert_eq!(arena.here.dedicated.iter().count(), 1);
    arena.take_idle(usize::MAX);
    let unknown = Err(Misuse::UnknownSegment { segment: id });
    assert_eq!(arena.release(block).map(drop), unknown);
}
