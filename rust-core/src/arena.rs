//! The set of segments: adopts them, picks the one that serves a request, gives idle ones back.
//!
//! Knows segments and their order; knows no policy (sizes, thresholds) and keeps no statistics.
//!
//! Invariants: regions do not overlap (I2); the fill order has one true entry for each segment;
//! an id names one segment, and none once its region was given back.

use crate::error::{AdoptError, Misuse};
use crate::fill_order::{Entry, FillOrder};
use crate::records::State;
use crate::segment::Segment;
use crate::units::{Block, Granules, Region, SegmentId};

/// A place for a segment, reused under a new generation.
#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    resident: Option<Resident>,
}

#[derive(Debug)]
pub(crate) struct Resident {
    pub(crate) segment: Segment,
    /// Counts adoptions.
    age: u64,
}

impl Resident {
    /// Its entry in the fill order, as it should be now.
    #[inline]
    pub(crate) fn entry(&self, slot: usize) -> Entry {
        let segment = &self.segment;
        let (free, idle) = (segment.free_granules(), segment.is_idle());
        Entry::new(free, idle, segment.longest(), self.age, slot as u32)
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    slots: Vec<Slot>,
    vacant: Vec<u32>,
    pub(crate) order: FillOrder,
    adoptions: u64,
}

impl Arena {
    /// A live block of `length >= 1` granules in the fullest segment that has room for it, at the
    /// lowest offset.
    #[inline]
    pub(crate) fn take(&mut self, length: Granules) -> Option<Block> {
        let place = self.order.find(length.get())?;
        let index = self.order.slot_at(place);
        let slot = &mut self.slots[index];
        let resident = slot.resident.as_mut()?;
        let start = resident.segment.take(length)?;
        let entry = resident.entry(index);
        let segment = SegmentId::new(index as u32, slot.generation);
        self.order.update(place, entry);
        Some(Block {
            segment,
            offset: start.bytes(),
            bytes: length.bytes(),
        })
    }

    /// Live to pending. The room is the same, so the order is.
    #[inline]
    pub(crate) fn defer(&mut self, block: Block) -> Result<(), Misuse> {
        self.resident_mut(block.segment)?.segment.defer(block)
    }

    /// Live or pending to free; what it was.
    #[inline]
    pub(crate) fn release(&mut self, block: Block) -> Result<State, Misuse> {
        let index = block.segment.slot();
        let resident = self.resident_mut(block.segment)?;
        let before = resident.entry(index);
        let state = resident.segment.release(block)?;
        let after = resident.entry(index);
        let place = self.order.place_of(&before);
        debug_assert!(
            place.is_some(),
            "a segment without an entry in the fill order"
        );
        if let Some(place) = place {
            self.order.update(place, after);
        }
        Ok(state)
    }

    /// Makes `region` a segment. O(S) in the number of segments, next to milliseconds of pinning.
    pub(crate) fn adopt(&mut self, region: Region) -> Result<SegmentId, AdoptError> {
        let Region { base, bytes } = region;
        let granules = Granules::inside(bytes).ok_or(AdoptError::TooLarge { bytes })?;
        if granules.get() == 0 {
            return Err(AdoptError::TooSmall { bytes });
        }
        let end = region
            .end()
            .ok_or(AdoptError::EndOverflows { base, bytes })?;
        for (segment, resident) in self.iter() {
            let adopted = resident.segment.region();
            if base < adopted.base + adopted.bytes && adopted.base < end {
                return Err(AdoptError::Overlaps {
                    region,
                    segment,
                    adopted,
                });
            }
        }
        let index = self.vacant_slot()?;
        let resident = Resident {
            segment: Segment::new(region, granules),
            age: self.adoptions,
        };
        self.adoptions += 1;
        self.order.insert(resident.entry(index));
        let slot = &mut self.slots[index];
        slot.resident = Some(resident);
        Ok(SegmentId::new(index as u32, slot.generation))
    }

    /// Removes all wholly idle segments: their regions as adopted, oldest first.
    pub(crate) fn take_idle(&mut self) -> Vec<Region> {
        let mut regions = Vec::new();
        for entry in self.order.take_idle() {
            let slot = &mut self.slots[entry.slot()];
            slot.generation = slot.generation.wrapping_add(1);
            self.vacant.push(entry.slot() as u32);
            regions.extend(
                slot.resident
                    .take()
                    .map(|resident| resident.segment.region()),
            );
        }
        regions
    }

    /// The segment that `id` names.
    #[inline]
    pub(crate) fn get(&self, id: SegmentId) -> Option<&Segment> {
        let slot = self.slots.get(id.slot())?;
        let resident = slot.resident.as_ref()?;
        (SegmentId::new(id.slot() as u32, slot.generation) == id).then_some(&resident.segment)
    }

    /// The segments with their ids, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SegmentId, &Resident)> {
        (0u32..).zip(&self.slots).filter_map(|(index, slot)| {
            let resident = slot.resident.as_ref()?;
            Some((SegmentId::new(index, slot.generation), resident))
        })
    }

    #[inline]
    fn resident_mut(&mut self, id: SegmentId) -> Result<&mut Resident, Misuse> {
        self.slots
            .get_mut(id.slot())
            .filter(|slot| SegmentId::new(id.slot() as u32, slot.generation) == id)
            .and_then(|slot| slot.resident.as_mut())
            .ok_or(Misuse::UnknownSegment { segment: id })
    }

    fn vacant_slot(&mut self) -> Result<usize, AdoptError> {
        if let Some(index) = self.vacant.pop() {
            return Ok(index as usize);
        }
        let index = self.slots.len();
        if index == SegmentId::SLOTS {
            return Err(AdoptError::TooManySegments { segments: index });
        }
        self.slots.push(Slot::default());
        Ok(index)
    }

    /// For tests of the audit.
    #[cfg(test)]
    pub(crate) fn corrupt(&mut self, id: SegmentId) -> &mut Segment {
        &mut self.resident_mut(id).unwrap().segment
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{GRANULE, MAX_REGION};

    const fn g(count: u32) -> Granules {
        Granules::new(count)
    }

    fn adopt(arena: &mut Arena, base: usize, granules: usize) -> SegmentId {
        arena
            .adopt(Region {
                base,
                bytes: granules * GRANULE,
            })
            .unwrap()
    }

    #[test]
    fn regions_that_cannot_be_segments_are_refused() {
        let mut arena = Arena::default();
        let segment = adopt(&mut arena, 0x10_0000, 4);
        let adopted = Region {
            base: 0x10_0000,
            bytes: 4 * GRANULE,
        };
        for (base, bytes, expected) in [
            (0, 0, AdoptError::TooSmall { bytes: 0 }),
            (0, GRANULE - 1, AdoptError::TooSmall { bytes: GRANULE - 1 }),
            (
                0,
                MAX_REGION + 1,
                AdoptError::TooLarge {
                    bytes: MAX_REGION + 1,
                },
            ),
            (0, usize::MAX, AdoptError::TooLarge { bytes: usize::MAX }),
            (
                usize::MAX - GRANULE,
                2 * GRANULE,
                AdoptError::EndOverflows {
                    base: usize::MAX - GRANULE,
                    bytes: 2 * GRANULE,
                },
            ),
        ] {
            assert_eq!(arena.adopt(Region { base, bytes }), Err(expected));
        }
        // One byte at either end, inside, around, and the same again.
        let (base, bytes) = (adopted.base, adopted.bytes);
        for (base, bytes) in [
            (base - GRANULE, GRANULE + 1),
            (base + bytes - 1, GRANULE),
            (base + GRANULE, GRANULE),
            (base - GRANULE, bytes + 2 * GRANULE),
            (base, bytes),
        ] {
            let region = Region { base, bytes };
            let expected = AdoptError::Overlaps {
                region,
                segment,
                adopted,
            };
            assert_eq!(arena.adopt(region), Err(expected));
        }
        assert_eq!(arena.iter().count(), 1);
        adopt(&mut arena, base - GRANULE, 1); // neighbours are no overlap
        adopt(&mut arena, base + bytes, 1);
    }

    #[test]
    fn the_tail_of_a_region_counts_for_overlaps() {
        let mut arena = Arena::default();
        arena
            .adopt(Region {
                base: GRANULE,
                bytes: GRANULE + 100,
            })
            .unwrap();
        let after = Region {
            base: 2 * GRANULE + 99,
            bytes: GRANULE,
        };
        assert!(matches!(
            arena.adopt(after),
            Err(AdoptError::Overlaps { .. })
        ));
        arena
            .adopt(Region {
                base: 2 * GRANULE + 100,
                bytes: GRANULE,
            })
            .unwrap();
    }

    #[test]
    fn the_fullest_segment_that_fits_is_filled() {
        let mut arena = Arena::default();
        let first = adopt(&mut arena, 0x100_0000, 10);
        let second = adopt(&mut arena, 0x200_0000, 10);
        let third = adopt(&mut arena, 0x300_0000, 6);
        // All idle: the smallest one that holds it.
        assert_eq!(arena.take(g(5)).unwrap().segment, third);
        // Not in the rest of the third: the oldest of the others.
        let block = arena.take(g(2)).unwrap();
        assert_eq!(block.segment, first);
        // The third has least room, the second stays idle.
        assert_eq!(arena.take(g(1)).unwrap().segment, third);
        assert_eq!(arena.take(g(8)).unwrap().segment, first);
        assert_eq!(arena.take(g(10)).unwrap().segment, second);
        assert_eq!(arena.take(g(1)), None);
        arena.release(block).unwrap();
        assert_eq!(arena.take(g(2)), Some(block));
    }

    #[test]
    fn an_id_dies_with_its_segment() {
        let mut arena = Arena::default();
        let first = adopt(&mut arena, 0x100_0000, 10);
        let block = arena.take(g(1)).unwrap();
        arena.release(block).unwrap();
        assert_eq!(
            arena.take_idle(),
            [Region {
                base: 0x100_0000,
                bytes: 10 * GRANULE
            }]
        );
        let second = adopt(&mut arena, 0x100_0000, 10);
        let again = arena.take(g(1)).unwrap();
        assert_ne!(first, second);
        assert_eq!((again.offset, again.bytes), (block.offset, block.bytes));
        // The old handle names the same place, which now is someone else's.
        let unknown = Err(Misuse::UnknownSegment { segment: first });
        assert_eq!(arena.release(block).map(drop), unknown);
        assert_eq!(arena.defer(block), unknown);
        assert!(arena.get(first).is_none());
        let never = SegmentId::from_u32(u32::MAX);
        assert!(
            arena
                .release(Block {
                    segment: never,
                    ..again
                })
                .is_err()
        );
        arena.release(again).unwrap();
    }

    #[test]
    fn a_segment_with_a_pending_block_is_not_idle() {
        let mut arena = Arena::default();
        adopt(&mut arena, 0x100_0000, 10);
        adopt(&mut arena, 0x200_0000, 20);
        let block = arena.take(g(15)).unwrap();
        arena.defer(block).unwrap();
        assert_eq!(
            arena.take_idle(),
            [Region {
                base: 0x100_0000,
                bytes: 10 * GRANULE
            }]
        );
        arena.release(block).unwrap();
        assert_eq!(
            arena.take_idle(),
            [Region {
                base: 0x200_0000,
                bytes: 20 * GRANULE
            }]
        );
        assert_eq!(arena.take_idle(), []);
    }
}
