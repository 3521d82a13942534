//! A plan as it is at run time: what `pinbuddy-slots` serves requests with.

use pinbuddy_slots as slots;

use crate::classes::Classes;
use crate::file::{GRANULE, Lane, Plan, Slot};

impl Plan {
    /// How many regions slots lie in: the first ones. All others are for requests that no slot serves.
    #[must_use]
    pub fn with_slots(&self) -> usize {
        let past = self.slots.iter().map(|it| it.region as usize + 1);
        past.max().unwrap_or(0)
    }

    /// Whether each request of the recorded run has a place of its own, and none comes again.
    #[must_use]
    pub fn comes_once(&self) -> bool {
        self.layout(self.with_slots()).comes_once()
    }

    /// What the engine is asked for where a request of so many bytes has no slot.
    #[must_use]
    pub fn size_class(&self, bytes: u64) -> u64 {
        let granules = u32::try_from(bytes.div_ceil(GRANULE)).unwrap_or(u32::MAX);
        match Classes(self.classes).round(granules) {
            same if same == granules => bytes,
            larger => u64::from(larger) * GRANULE,
        }
    }

    /// Its slots and lanes, and the first `regions` of its regions; at least those with slots.
    #[must_use]
    pub fn layout(&self, regions: usize) -> slots::Layout {
        let bytes = self.regions[..regions].iter();
        slots::Layout {
            regions: bytes.map(|it| *it as usize).collect(),
            slots: self.slots.iter().map(slot).collect(),
            lanes: self.lanes.iter().map(lane).collect(),
        }
    }
}

fn slot(slot: &Slot) -> slots::Slot {
    slots::Slot { bytes: slot.bytes as usize, region: slot.region, offset: slot.offset as usize }
}

fn lane(lane: &Lane) -> slots::Lane {
    slots::Lane {
        prologue: lane.prologue.clone(),
        period: lane.period.clone(),
        turns: lane.turns,
        clears: lane.clears.clone(),
    }
}
