//! Which regions overlap, and what false claims are told. Which segment serves, and which are removed, `tests/model` says.

use super::*;
use crate::units::{GRANULE, Region};

const fn g(count: u32) -> Granules {
    Granules::new(count)
}

fn adopt(arena: &mut Arena, base: usize, bytes: usize, dedicated: bool) -> Result<SegmentId, AdoptError> {
    let segment = NewSegment::new(Region { base, bytes }).unwrap();
    arena.adopt(segment, dedicated)
}

#[test]
fn regions_that_overlap_are_refused() {
    let mut arena = Arena::default();
    let (base, bytes) = (0x10_0000, 4 * GRANULE);
    let segment = adopt(&mut arena, base, bytes, false).unwrap();
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
        assert_eq!(adopt(&mut arena, base, bytes, false), Err(expected));
    }
    assert_eq!(arena.iter().count(), 1);
    for neighbour in [base - GRANULE, base + bytes] {
        adopt(&mut arena, neighbour, GRANULE, false).unwrap();
    }
}

#[test]
fn misuse_of_a_dedicated_region_is_refused_and_changes_nothing() {
    let mut arena = Arena::default();
    let id = adopt(&mut arena, 0x100_0000, 100 * GRANULE, true).unwrap();
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
