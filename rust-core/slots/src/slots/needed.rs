//! Requests whose slot is free, but whose region is not there: who has them takes the region, and asks again.

use super::{Slots, Taken};
use crate::layout::GRANULE;

/// A request whose slot's region is not there: the step, and whether it counts as a miss, else as unplanned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needed {
    pub(super) lane: u32,
    pub(super) step: usize,
    pub(super) missed: bool,
}

impl Slots {
    /// After a request of so many bytes that had no place: the slot that it would have, were its region there, and that
    /// region.
    pub fn take_needed(&mut self, bytes: usize) -> Option<(u32, usize)> {
        let (needed, step) = self.needed.take()?;
        let slot = &self.places[needed as usize].slot;
        let is_its_own = bytes.checked_next_multiple_of(GRANULE) == Some(slot.bytes);
        let region = slot.region as usize;
        is_its_own.then(|| {
            self.awaited.insert(needed, step);
            (needed, region)
        })
    }

    /// Serves a request that got no slot with the one that it needed, if its region is there now.
    pub fn serve_needed(&mut self, slot: u32) -> Option<Taken> {
        let taken = self.serve(*self.awaited.get(&slot)?)?;
        self.awaited.remove(&slot);
        Some(taken)
    }

    /// The same of a request whose step is at hand: it is a hit after all.
    pub(super) fn serve(&mut self, needed: Needed) -> Option<Taken> {
        let Needed { lane, step, missed } = needed;
        let taken = self.take(lane, step)?;
        if missed {
            self.counts.misses -= 1;
        } else {
            self.counts.unplanned -= 1;
        }
        Some(taken)
    }
}
