//! How a plan gives way where the device is full, by the rules of a run (`cxx-bridge/cpp/device/give_way.h`).
//!
//! Regions in which nothing lies are given back; then a request gets what is idle in a region of its stream; then the plans are set
//! aside for a while.

use pinbuddy_slots::Slots;

use super::{At, Memory, Planned, SHORTEST};
use crate::{Device, OutOfMemory};

/// An iteration has so many requests at least; regions are left for it, and for twice as many each time, up to so many doublings.
const FEWEST: usize = 64;
const DOUBLINGS: u32 = 3;

/// How a stream's plan stands.
#[derive(Debug, Default)]
pub(super) struct Full {
    /// So many requests come before the regions are taken again.
    wait: usize,
    /// So many requests get what is idle before the allocator below is asked.
    borrows: usize,
    given_back: u32,
    set_aside: u32,
    is_aside: bool,
    is_dropped: bool,
}

impl Full {
    /// Whether a request gets what is idle.
    pub(super) fn borrows(&mut self) -> bool {
        let borrows = self.borrows > 0;
        self.borrows = self.borrows.saturating_sub(1);
        borrows
    }

    /// The cache was emptied.
    pub(super) fn cleared(&mut self) {
        self.borrows = 0;
        if std::mem::take(&mut self.is_aside) {
            self.wait = 0;
        }
    }
}

impl Memory {
    fn turn(&self) -> usize {
        let turn = self.slots.as_ref().map_or(0, |it| it.turn(0));
        turn.max(FEWEST)
    }

    fn set_aside(&mut self) {
        if self.full.is_aside || self.full.is_dropped || self.slots.is_none() {
            return;
        }
        self.full.wait = self.turn() << self.full.set_aside.min(DOUBLINGS);
        self.full.set_aside += 1;
        self.full.is_aside = true;
    }
}

impl Planned {
    /// Whether the plan of a stream serves, whose regions may have to be taken first.
    pub(super) fn is_in_force(&mut self, number: usize, stream: u32) -> bool {
        let memory = &mut self.memory[number];
        if memory.full.is_dropped {
            return false;
        }
        if memory.full.wait > 0 {
            memory.full.wait -= 1;
            return false;
        }
        let is_there = self.take_regions(number, stream).is_ok();
        let full = &mut self.memory[number].full;
        full.is_aside = false;
        if !is_there {
            match full.set_aside {
                0 => full.is_dropped = true,
                _ => self.memory[number].set_aside(),
            }
            self.give_back(number);
            self.below.clear();
        }
        is_there
    }

    fn take_regions(&mut self, number: usize, stream: u32) -> Result<(), OutOfMemory> {
        let memory = &mut self.memory[number];
        let Some(slots) = &mut memory.slots else {
            return Ok(());
        };
        for region in (0..memory.reserved.len())
            .filter(|it| !memory.reserved[*it])
            .collect::<Vec<_>>()
        {
            if self.below.within_reach() < self.needed {
                return Err(OutOfMemory);
            }
            let block = memory.first + region as u32;
            let bytes = (slots.lengths()[region] as u64).max(SHORTEST);
            self.below.allocate(block, bytes, stream)?;
            slots.pinned(region, (block as usize + 1) << 40);
            memory.reserved[region] = true;
        }
        Ok(())
    }

    /// The allocator below serves a request, or what is idle in a region does.
    pub(super) fn below_or_idle(
        &mut self,
        block: u32,
        bytes: u64,
        stream: u32,
    ) -> Result<Option<(usize, At)>, OutOfMemory> {
        let named = self.regions + block;
        let Err(full) = self.below.allocate(named, bytes, stream) else {
            return Ok(None);
        };
        let mut gave = false;
        for number in 0..self.memory.len() {
            if self.give_back(number) {
                let memory = &mut self.memory[number];
                memory.full.wait = memory.turn() << memory.full.given_back.min(DOUBLINGS);
                memory.full.given_back += 1;
                gave = true;
            }
        }
        if gave && self.below.allocate(named, bytes, stream).is_ok() {
            return Ok(None);
        }
        if let Some(number) = self.streams.find(stream)
            && let Some(memory) = self.memory.get_mut(number)
            && let Some(lent) = memory
                .slots
                .as_mut()
                .and_then(|it| it.lend_any(bytes as usize))
        {
            memory.full.borrows = memory.turn();
            return Ok(Some((number, At::Borrowed(lent.address))));
        }
        self.memory.iter_mut().for_each(Memory::set_aside);
        Err(full)
    }

    /// Gives back the regions of a stream in which nothing lies. Returns whether there were any.
    pub(super) fn give_back(&mut self, number: usize) -> bool {
        let memory = &mut self.memory[number];
        let idle = memory
            .slots
            .as_mut()
            .map(Slots::take_idle)
            .unwrap_or_default();
        for &(region, _) in &idle {
            memory.reserved[region] = false;
            self.below.free(memory.first + region as u32);
        }
        if !idle.is_empty() {
            memory.full.borrows = 0;
        }
        !idle.is_empty()
    }

    /// Something was released: a plan that is not in force leaves its regions as soon as nothing lies in them.
    pub(super) fn leave(&mut self, number: usize) {
        let full = &self.memory[number].full;
        if full.is_aside || full.is_dropped {
            self.give_back(number);
        }
    }
}
