//! What a plan says of places and sequences, and the check that it can be used.

/// Slots begin and end at multiples of this.
pub use pinbuddy_core::GRANULE;

/// A place for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The request, rounded up to granules.
    pub bytes: usize,
    /// Which region, counted from 0.
    pub region: u32,
    /// Where in the region, in bytes.
    pub offset: usize,
}

/// What a thread asks for, or several one after the other: indexes of slots in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// Once, at the beginning.
    pub prologue: Vec<u32>,
    /// Then this, again and again; nothing if it is empty.
    pub period: Vec<u32>,
    /// How many iterations the period holds, all of them equally long; 0 is 1.
    pub turns: u32,
    /// The loop empties the cache before these steps, of the prologue and then of one iteration.
    pub clears: Vec<u32>,
}

/// The regions, the slots in them and the lanes that use them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of each region.
    pub regions: Vec<usize>,
    /// All slots.
    pub slots: Vec<Slot>,
    /// The lanes, in the order of their first requests.
    pub lanes: Vec<Lane>,
}

/// Why a layout cannot be used. Everything is counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// Not whole granules, or none.
    #[error("slot {0} has {1} bytes at offset {2}; both must be multiples of {GRANULE}")]
    Granules(usize, usize, usize),
    /// A slot that no region holds.
    #[error("slot {0} does not lie in a region")]
    Outside(usize),
    /// A lane that names a slot which does not exist.
    #[error("lane {0} names slot {1}, and there are {2}")]
    Unknown(usize, u32, usize),
    /// More than is counted here.
    #[error("the plan has more than 2^31 slots, or as many steps in a lane")]
    TooMany,
}

/// The most slots, and the most steps of a lane.
const MOST: usize = 1 << 31;

impl Layout {
    /// Whether nothing of it comes again: each request of a whole run has its own place.
    pub fn comes_once(&self) -> bool {
        !self.lanes.is_empty() && self.lanes.iter().all(|it| it.period.is_empty())
    }

    /// Whether it can be used.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it.
    pub fn check(&self) -> Result<(), Mistake> {
        let steps = |lane: &Lane| lane.prologue.len().saturating_add(lane.period.len());
        if self.slots.len() >= MOST || self.lanes.iter().any(|lane| steps(lane) >= MOST) {
            return Err(Mistake::TooMany);
        }
        for (index, slot) in self.slots.iter().enumerate() {
            let &Slot { bytes, region, offset } = slot;
            if bytes == 0 || bytes % GRANULE != 0 || offset % GRANULE != 0 {
                return Err(Mistake::Granules(index, bytes, offset));
            }
            let length = self.regions.get(region as usize).copied().unwrap_or(0);
            if length.checked_sub(offset).is_none_or(|room| room < bytes) {
                return Err(Mistake::Outside(index));
            }
        }
        for (index, lane) in self.lanes.iter().enumerate() {
            let mut steps = lane.prologue.iter().chain(&lane.period);
            if let Some(&slot) = steps.find(|&&slot| slot as usize >= self.slots.len()) {
                return Err(Mistake::Unknown(index, slot, self.slots.len()));
            }
        }
        Ok(())
    }
}
