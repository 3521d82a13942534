//! The regions of a stream's plan: each is taken with the first request that has a place there, or none elsewhere, and again after it was
//! given back.
//!
//! So a program that empties its cache, and looks what the device has left, finds what it finds without a plan: what it asks for later
//! is not taken yet. Regions without slots, of which all is lent, are taken with the first request.

use std::mem;

use pinbuddy_plan::device::asked_for;

use super::super::moves;
use super::{GiveBack, IdleRegion, Length, Phase, State, StreamPlan};

/// Where memory was short, regions are left for an iteration, and for twice as many each time, up to 2^DOUBLINGS.
const DOUBLINGS: u64 = 3;

#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    bytes: usize,
    /// 0 while it is not there.
    base: usize,
    /// As PyTorch's allocator has it: not shorter.
    held: Length,
    has_slots: bool,
    /// It is to be taken: a request has a place there or none elsewhere, or all of it is lent.
    is_wanted: bool,
}

impl StreamPlan {
    /// How many regions there are.
    pub fn regions(&self) -> usize {
        self.state.lock().regions.len()
    }

    /// The bytes of a region.
    pub fn region_bytes(&self, region: usize) -> usize {
        self.state.lock().regions[region].bytes
    }

    /// Begins to take the regions that are wanted; false if they are there, another thread takes them, or the plan is dropped.
    pub fn begin_reserve(&self) -> bool {
        let mut state = self.state.lock();
        let is_cold = state.phase == Phase::Cold;
        if is_cold {
            state.phase = Phase::Reserving;
            moves::begin();
        }
        is_cold
    }

    /// Whether the region is wanted, and not there.
    pub fn lacks(&self, region: usize) -> bool {
        let it = self.state.lock().regions[region];
        it.is_wanted && it.base == 0
    }

    /// The region lies at this address from now on, and is so long to PyTorch's allocator. Nobody asks for any of it yet, but a
    /// request that finds no other memory.
    pub fn reserved(&self, region: usize, base: usize, held: usize, is_oversize: bool) {
        let mut state = self.state.lock();
        let held = Length { bytes: held, requested: state.regions[region].bytes, is_oversize };
        state.places.reserved(region, base);
        state.counted.region_came(held);
        (state.regions[region].base, state.regions[region].held) = (base, held);
    }

    /// All that were wanted were taken, or not; returns those that are given back then. The caller says `device_moved` in any case.
    pub fn end_reserve(&self, all: bool) -> Vec<IdleRegion> {
        let mut state = self.state.lock();
        state.phase = match (state.drops, all) {
            (true, _) => Phase::Dropped,
            (false, true) => Phase::Ready,
            (false, false) => Phase::Cold,
        };
        match state.phase {
            Phase::Ready => Vec::new(),
            _ => state.take_idle(),
        }
    }

    /// Takes the regions in which nothing lies; the caller gives them back, and says `device_moved` if there are any.
    /// Where the cache was emptied, each is taken again with the next request that needs it; where memory was short, a while later;
    /// where the plan is not used any more, the others are given back, too, once their last block is freed.
    pub fn give_back(&self, why: GiveBack) -> Vec<IdleRegion> {
        let mut state = self.state.lock();
        if state.phase == Phase::Reserving {
            // Nothing lies in them yet, but they may be on their way: whoever takes them looks.
            state.drops |= why == GiveBack::ForGood;
            return Vec::new();
        }
        if why == GiveBack::Cleared {
            state.borrows = 0;
        }
        let idle = state.take_idle();
        if why == GiveBack::Short && !idle.is_empty() {
            state.stays_away();
        }
        if why == GiveBack::ForGood {
            state.phase = Phase::Dropped;
        } else if state.phase == Phase::Ready && !idle.is_empty() {
            state.phase = match why {
                GiveBack::Short => Phase::Cold,
                _ => state.rests(),
            };
        }
        idle
    }

    /// PyTorch's allocator has no room for a region that is wanted. Where others are there, requests are left to it for a while, as
    /// where memory is short; else the plan is dropped, and the answer is true.
    pub fn refused(&self) -> bool {
        let mut state = self.state.lock();
        let is_first = state.regions.iter().all(|it| it.base == 0);
        if is_first {
            state.drops = true;
        } else {
            state.stays_away();
        }
        is_first
    }

    /// The same of a plan that was dropped before, of which a block has gone.
    pub fn take_dropped(&self) -> Vec<IdleRegion> {
        let mut state = self.state.lock();
        match state.phase {
            Phase::Dropped => state.take_idle(),
            _ => Vec::new(),
        }
    }

    /// A region that was idle does not count any more.
    pub(crate) fn gone(&self, held: Length) {
        self.state.lock().counted.region_went(held);
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.state.lock().phase == Phase::Dropped
    }

    /// The bytes of regions in no block.
    pub fn idle(&self) -> usize {
        self.state.lock().counted.idle() as usize
    }

    /// The bytes of regions that are there, as PyTorch's allocator counts them.
    pub fn reserved_bytes(&self) -> usize {
        let state = self.state.lock();
        let there = state.regions.iter().filter(|it| it.base != 0);
        there.map(|it| it.held.bytes).sum()
    }
}

impl State {
    /// The phase of a plan in force: with regions to be taken, or none.
    pub(super) fn rests(&self) -> Phase {
        match self.regions.iter().any(|it| it.is_wanted && it.base == 0) {
            true => Phase::Cold,
            false => Phase::Ready,
        }
    }

    /// Regions are left for an iteration or more.
    fn stays_away(&mut self) {
        let iterations = 1 << self.given_back.min(DOUBLINGS);
        self.waits = self.requests_of_an_iteration() * iterations;
        self.given_back += 1;
        for it in &mut self.regions {
            it.is_wanted = !it.has_slots;
        }
    }

    /// A request has a place in this region, which is not there, or none elsewhere.
    pub(super) fn wants(&mut self, region: usize) {
        self.regions[region].is_wanted = true;
        self.phase = Phase::Cold;
    }

    /// The regions in which nothing lies; they are the caller's.
    pub(super) fn take_idle(&mut self) -> Vec<IdleRegion> {
        let numbers = self.places.take_idle();
        if !numbers.is_empty() {
            moves::begin();
            // PyTorch's allocator has memory again.
            self.borrows = 0;
        }
        let idle = |region: usize| {
            let it = &mut self.regions[region];
            it.is_wanted = !it.has_slots;
            IdleRegion { region, base: mem::take(&mut it.base), held: mem::take(&mut it.held) }
        };
        numbers.into_iter().map(idle).collect()
    }
}

impl Region {
    /// Not there yet.
    pub(super) fn of(planned: usize, has_slots: bool) -> Self {
        Self {
            bytes: asked_for(planned as u64) as usize,
            base: 0,
            held: Length::default(),
            has_slots,
            is_wanted: !has_slots,
        }
    }
}
