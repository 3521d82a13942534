//! The ids of segments: slots that are reused with a new generation, and an index of their regions.
//!
//! Invariants: an id names one segment, and none after that segment was removed; regions do not overlap
//! (I2). Knows no order among segments, and not which serves a request.

use std::collections::BTreeMap;

use crate::dedicated::Fit;
use crate::error::{AdoptError, Misuse};
use crate::fill_order::Entry;
use crate::kind::SegmentKind;
use crate::segment::Segment;
use crate::units::{Granules, Region, SegmentId};
use crate::view::SegmentView;

/// A place for a segment, reused under a new generation.
#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    resident: Option<Resident>,
}

/// A segment in its slot, with the numbers that order it among others.
#[derive(Debug)]
pub(crate) struct Resident {
    pub(crate) segment: Segment,
    /// The number of its adoption: the older segment has the lower one.
    pub(super) age: u64,
    /// The number of the release that left it without a block.
    pub(super) idle_since: u64,
    pub(crate) kind: SegmentKind,
}

impl Resident {
    /// The entry that it should have in the fill order.
    #[inline]
    pub(crate) fn entry(&self, slot: usize) -> Entry {
        let segment = &self.segment;
        let (free, longest) = (segment.free_granules(), segment.longest());
        Entry::new(free, self.kind, longest, self.age, slot as u32)
    }

    /// The entry that it should have in the dedicated index while it is idle.
    pub(crate) fn fit(&self, slot: usize) -> Fit {
        Fit { granules: self.segment.granules(), age: self.age, slot: slot as u32 }
    }

    #[inline]
    pub(crate) fn is_dedicated(&self) -> bool {
        self.kind == SegmentKind::Dedicated
    }

    /// The longest free run that a block can be cut from, in granules.
    pub(crate) fn longest(&self) -> u32 {
        if self.is_dedicated() && !self.segment.is_idle() { 0 } else { self.segment.longest() }
    }

    /// Its description for callers, under the id `id`.
    pub(crate) fn view(&self, id: SegmentId) -> SegmentView {
        SegmentView {
            longest_free_run_bytes: Granules::new(self.longest()).bytes(),
            ..self.segment.view(id, self.kind)
        }
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    vacant: Vec<u32>,
    /// Slots by the first address of their region: a new region is compared with its neighbours only.
    by_address: BTreeMap<usize, u32>,
}

impl Slots {
    /// The segment in a slot.
    pub(super) fn at(&self, index: usize) -> Option<&Resident> {
        self.slots[index].resident.as_ref()
    }

    /// The same, with its id.
    // Inlined always, so that a block stays in registers.
    #[inline(always)]
    pub(super) fn at_mut(&mut self, index: usize) -> Option<(SegmentId, &mut Resident)> {
        let slot = &mut self.slots[index];
        let id = SegmentId::new(index as u32, slot.generation);
        Some((id, slot.resident.as_mut()?))
    }

    /// What `id` names.
    #[inline]
    pub(super) fn get(&self, id: SegmentId) -> Option<&Resident> {
        let slot = self.slots.get(id.slot())?;
        let resident = slot.resident.as_ref()?;
        (SegmentId::new(id.slot() as u32, slot.generation) == id).then_some(resident)
    }

    /// What `id` names.
    #[inline]
    pub(super) fn get_mut(&mut self, id: SegmentId) -> Result<&mut Resident, Misuse> {
        self.slots
            .get_mut(id.slot())
            .filter(|slot| SegmentId::new(id.slot() as u32, slot.generation) == id)
            .and_then(|slot| slot.resident.as_mut())
            .ok_or(Misuse::UnknownSegment { segment: id })
    }

    /// All segments with their ids, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (SegmentId, &Resident)> {
        (0u32..).zip(&self.slots).filter_map(|(index, slot)| {
            let resident = slot.resident.as_ref()?;
            Some((SegmentId::new(index, slot.generation), resident))
        })
    }

    /// Gives a segment an id, unless its region overlaps another's.
    pub(super) fn insert(&mut self, resident: Resident) -> Result<(SegmentId, &mut Resident), AdoptError> {
        let region = resident.segment.region();
        if let Some((segment, adopted)) = self.overlapped_by(region) {
            return Err(AdoptError::Overlaps { region, segment, adopted });
        }
        let index = self.vacant_slot()?;
        self.by_address.insert(region.base, index as u32);
        let slot = &mut self.slots[index];
        let id = SegmentId::new(index as u32, slot.generation);
        Ok((id, slot.resident.insert(resident)))
    }

    /// Takes a segment out of its slot: its id names nothing any more.
    pub(super) fn remove(&mut self, index: usize) -> Option<Resident> {
        let slot = &mut self.slots[index];
        let resident = slot.resident.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.vacant.push(index as u32);
        self.by_address.remove(&resident.segment.region().base);
        Some(resident)
    }

    /// The segment that overlaps `region`, and its region. Adopted regions do not overlap each other, so
    /// only the last one that starts before the end of `region` can.
    fn overlapped_by(&self, region: Region) -> Option<(SegmentId, Region)> {
        // Both ends were checked: they do not overflow.
        let end = region.base + region.bytes;
        let (_, index) = self.by_address.range(..end).next_back()?;
        let slot = &self.slots[*index as usize];
        let adopted = slot.resident.as_ref()?.segment.region();
        let id = SegmentId::new(*index, slot.generation);
        (adopted.base + adopted.bytes > region.base).then_some((id, adopted))
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
}
