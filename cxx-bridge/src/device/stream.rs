//! The plan of one stream at run time, as C++ asks it. C++ holds it under a lock of its own.

use pinbuddy_plan::device::LENT_FROM;
use pinbuddy_slots::{Borrowed, Lent, Slots};

use crate::ffi::{Part, Place, StreamCounts};

/// The slot of a place in what the plan leaves idle.
const BORROWED: u32 = u32::MAX;

/// PyTorch counts blocks as whole numbers of so many bytes.
const COUNTED: usize = 512;

/// A stream's slots; none where nothing is planned for it.
#[derive(Debug)]
pub(crate) struct StreamPlan {
    slots: Option<Slots>,
    /// The length of the longest region.
    longest: usize,
}

impl Place {
    /// For a request of so many bytes.
    fn of(lent: Borrowed, bytes: usize) -> Self {
        Self {
            address: lent.address,
            bytes: bytes.next_multiple_of(COUNTED),
            slot: BORROWED,
        }
    }
}

impl StreamPlan {
    pub(super) fn new(slots: Option<Slots>) -> Self {
        let lengths = slots.as_ref().map_or(&[][..], Slots::lengths);
        Self {
            longest: lengths.iter().copied().max().unwrap_or(0),
            slots,
        }
    }

    /// How many regions there are.
    pub(crate) fn regions(&self) -> usize {
        self.slots.as_ref().map_or(0, |it| it.lengths().len())
    }

    pub(crate) fn region_bytes(&self, region: usize) -> usize {
        self.slots.as_ref().map_or(0, |it| it.lengths()[region])
    }

    /// The region lies at this address from now on.
    pub(crate) fn reserved(&mut self, region: usize, base: usize) {
        if let Some(slots) = &mut self.slots {
            slots.pinned(region, base);
        }
    }

    /// For how many requests an iteration has places.
    pub(crate) fn turn(&self) -> usize {
        self.slots.as_ref().map_or(0, |it| it.turn(0))
    }

    /// The regions in which nothing lies; they are the caller's.
    pub(crate) fn take_idle(&mut self) -> Vec<usize> {
        let idle = self
            .slots
            .as_mut()
            .map(Slots::take_idle)
            .unwrap_or_default();
        idle.into_iter().map(|(region, _)| region).collect()
    }

    /// A place for a request; false if there is none.
    pub(crate) fn request(&mut self, bytes: usize, place: &mut Place) -> bool {
        let Some(slots) = &mut self.slots else {
            return false;
        };
        let lent = match slots.request(0, bytes) {
            Some(taken) => Some(Lent::Slot(taken)),
            None if (LENT_FROM as usize..=self.longest).contains(&bytes) => slots.lend(0, bytes),
            // It is short, or no place is long enough. The lane has seen the request all the same.
            None => None,
        };
        *place = match lent {
            Some(Lent::Slot(taken)) => Place {
                address: taken.address,
                bytes: bytes.next_multiple_of(COUNTED),
                slot: taken.slot,
            },
            Some(Lent::Place(lent)) => Place::of(lent, bytes),
            None => return false,
        };
        true
    }

    /// What is idle, whoever wants it next: for a request that finds no other memory. False if nothing is long enough.
    pub(crate) fn borrow(&mut self, bytes: usize, place: &mut Place) -> bool {
        let lent = self.slots.as_mut().and_then(|it| it.lend_any(bytes));
        lent.map(|it| *place = Place::of(it, bytes)).is_some()
    }

    /// The block was freed, and other streams still use it.
    pub(crate) fn defer(&mut self, place: &Place) {
        match &mut self.slots {
            Some(slots) if place.slot == BORROWED => slots.set_pending_at(place.address, true),
            Some(slots) => slots.set_pending(place.slot, true),
            None => {}
        }
    }

    /// Nobody uses the block any more.
    pub(crate) fn release(&mut self, place: &Place) {
        let was_in_use = match &mut self.slots {
            Some(slots) if place.slot == BORROWED => slots.give_back(place.address),
            Some(slots) => slots.release(place.slot),
            None => true,
        };
        debug_assert!(
            was_in_use,
            "a place at {:#x} was freed twice",
            place.address
        );
    }

    pub(crate) fn iteration(&mut self) {
        if let Some(slots) = &mut self.slots {
            slots.iteration(0);
        }
    }

    /// The blocks, by address.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for (at, blocks) in self.slots.as_ref().map(Slots::regions).unwrap_or_default() {
            parts.extend(blocks.into_iter().map(|it| Part {
                address: at.start + it.offset,
                bytes: it.bytes,
                live: !it.pending,
                pending: it.pending,
            }));
        }
        parts
    }

    pub(crate) fn counts(&self) -> StreamCounts {
        let counts = self.slots.as_ref().map(Slots::counts).unwrap_or_default();
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
