//! The plan of one stream at run time, as C++ asks it. C++ holds it under a lock of its own.
//!
//! Invariant: no call panics, since a panic that reaches C++ ends the process: what may panic is in [`super::places`].

use pinbuddy_slots::Slots;

use super::places::{Placed, Places};
use crate::ffi::{Part, Place, StreamCounts};

/// The slot of a place in what the plan leaves idle.
const BORROWED: u32 = u32::MAX;

/// PyTorch counts blocks as whole numbers of so many bytes.
const COUNTED: usize = 512;

/// A stream's places; none where nothing is planned for it.
#[derive(Debug)]
pub(crate) struct StreamPlan {
    places: Places,
    device_bytes: u64,
}

impl Place {
    /// For a request of so many bytes.
    fn of(placed: Placed, bytes: usize) -> Self {
        Self {
            address: placed.address,
            bytes: bytes.next_multiple_of(COUNTED),
            slot: placed.slot.unwrap_or(BORROWED),
        }
    }
}

impl From<&Place> for Placed {
    fn from(place: &Place) -> Self {
        Self {
            address: place.address,
            slot: (place.slot != BORROWED).then_some(place.slot),
        }
    }
}

impl StreamPlan {
    pub(super) fn new(slots: Option<Slots>, device_bytes: u64) -> Self {
        Self {
            places: Places::new(slots),
            device_bytes,
        }
    }

    /// The plans of the device are used where the process can have so much.
    pub(crate) fn device_bytes(&self) -> u64 {
        self.device_bytes
    }

    /// How many regions there are.
    pub(crate) fn regions(&self) -> usize {
        self.places.lengths().len()
    }

    pub(crate) fn region_bytes(&self, region: usize) -> usize {
        self.places.lengths().get(region).copied().unwrap_or(0)
    }

    /// The region lies at this address from now on.
    pub(crate) fn reserved(&mut self, region: usize, base: usize) {
        self.places.reserved(region, base);
    }

    /// For how many requests an iteration has places.
    pub(crate) fn turn(&self) -> usize {
        self.places.turn()
    }

    /// The regions in which nothing lies; they are the caller's.
    pub(crate) fn take_idle(&mut self) -> Vec<usize> {
        self.places.take_idle()
    }

    /// A place for a request; false if there is none.
    pub(crate) fn request(&mut self, bytes: usize, place: &mut Place) -> bool {
        let placed = self.places.request(bytes);
        placed.map(|it| *place = Place::of(it, bytes)).is_some()
    }

    /// What is idle, whoever wants it next: for a request that finds no other memory. False if nothing is long enough.
    pub(crate) fn borrow(&mut self, bytes: usize, place: &mut Place) -> bool {
        let placed = self.places.borrow(bytes);
        placed.map(|it| *place = Place::of(it, bytes)).is_some()
    }

    /// The block was freed, and other streams still use it.
    pub(crate) fn defer(&mut self, place: &Place) {
        self.places.defer(place.into());
    }

    /// Nobody uses the block any more.
    pub(crate) fn release(&mut self, place: &Place) {
        self.places.release(place.into());
    }

    pub(crate) fn iteration(&mut self) {
        self.places.iteration();
    }

    /// Whether a panic retired the plan since this was last asked: it serves nothing more, and knows no blocks.
    pub(crate) fn take_retirement(&mut self) -> bool {
        self.places.take_retirement()
    }

    /// The blocks, by address.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let blocks = self.places.blocks().into_iter();
        let part = |it: super::places::Shown| Part {
            address: it.address,
            bytes: it.bytes,
            live: !it.pending,
            pending: it.pending,
        };
        blocks.map(part).collect()
    }

    pub(crate) fn counts(&self) -> StreamCounts {
        let counts = self.places.counts();
        StreamCounts {
            hits: counts.hits,
            misses: counts.misses,
            unplanned: counts.unplanned,
            resyncs: counts.resyncs,
            borrowed: counts.borrowed,
            ..StreamCounts::default()
        }
    }
}
