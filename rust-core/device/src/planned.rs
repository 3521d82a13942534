//! A plan in front of PyTorch's allocator, by the rules of a run (`cxx-bridge/cpp/device`).
//!
//! Requests from a threshold on go to the slots of their stream, by the code that serves them in a run, then, if they are not
//! short, to what slots leave idle, and else to the allocator below. A region is taken from there with the first request that has a place
//! in it, or finds none elsewhere, or with the stream's first one where it has no slots. A full device is not
//! modelled: a plan is never dropped. Of what it holds, [`Usage::allocated`] and [`Usage::active`] count regions as blocks.

use std::collections::HashMap;

use pinbuddy_slots::{Layout, Lent, Mistake, Served, Slots};

use serde::Serialize;

use super::place;
use super::torch::{LARGE, SEGMENT};
use super::{Device, LENT_FROM, MIB, Torch, Usage};

/// A run numbers so many streams of a device; none after them has a plan.
pub const MOST_STREAMS: usize = 64;

/// A region is not shorter, so that it lies with PyTorch's large blocks.
const SHORTEST: u64 = MIB + 4096;

/// What is asked of PyTorch's allocator for a region of so many bytes. A segment of its own has nothing else in it, which would stay
/// when the region goes.
pub fn asked_for(region: u64) -> u64 {
    match region.max(SHORTEST) {
        bytes if bytes < LARGE => bytes,
        bytes => bytes.next_multiple_of(SEGMENT),
    }
}

/// Streams in the order in which they asked for planned memory: a plan names them by these numbers.
#[derive(Clone, Debug, Default)]
pub struct Streams(HashMap<u32, usize>);

impl Streams {
    /// The number of a stream that asks for planned memory now.
    pub fn number(&mut self, stream: u32) -> usize {
        let next = self.0.len();
        *self.0.entry(stream).or_insert(next)
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Planned {
    below: Torch,
    threshold: u64,
    streams: Streams,
    /// By the streams' numbers.
    memory: Vec<Memory>,
    /// Regions have the first numbers below.
    regions: u32,
    /// Of the longest region.
    longest: u64,
    live: Vec<Option<Live>>,
}

/// What is planned for a stream.
#[derive(Clone, Debug)]
struct Memory {
    slots: Option<Slots>,
    /// The number of its first region below.
    first: u32,
}

#[derive(Clone, Copy, Debug)]
struct Live {
    stream: u32,
    number: usize,
    at: At,
    shared: bool,
    freed: bool,
}

#[derive(Clone, Copy, Debug)]
enum At {
    Slot(u32),
    Borrowed(usize),
}

/// What was counted of requests that may be planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Served by their slots.
    pub hits: u64,
    /// Served with what was idle.
    pub borrowed: u64,
    /// Bytes of all planned regions that were there.
    pub planned_bytes: u64,
}

impl Planned {
    /// A plan in front of an allocator: of each stream, by its number, what is planned of requests from `threshold` bytes on.
    ///
    /// # Errors
    ///
    /// Why it cannot be used.
    pub fn new(below: Torch, threshold: u64, plans: &[Option<Layout>]) -> Result<Self, Mistake> {
        let mut regions = 0;
        let memory = plans.iter().map(|plan| {
            let slots = plan.as_ref().map(Slots::learning).transpose()?;
            let first = regions;
            regions += slots.as_ref().map_or(0, |it| it.lengths().len()) as u32;
            Ok(Memory { slots, first })
        });
        let memory = memory.collect::<Result<Vec<_>, Mistake>>()?;
        let lengths = plans.iter().flatten().flat_map(|it| &it.regions);
        Ok(Self {
            longest: lengths.max().map_or(0, |it| *it as u64),
            below,
            threshold,
            streams: Streams::default(),
            memory,
            regions,
            live: Vec::new(),
        })
    }

    /// The same, as it is now, in front of another allocator.
    #[must_use]
    pub fn before(&self, below: Torch) -> Self {
        Self { below, ..self.clone() }
    }

    /// How its streams fared.
    pub fn counts(&self) -> Counts {
        let slots = self.memory.iter().filter_map(|it| it.slots.as_ref());
        slots.fold(Counts::default(), |all, it| Counts {
            hits: all.hits + it.counts().hits,
            borrowed: all.borrowed + it.counts().borrowed,
            planned_bytes: all.planned_bytes + it.were_there() as u64,
        })
    }

    /// How many requests they had places for.
    pub fn served(&self) -> Served {
        self.memory.iter().filter_map(|it| it.slots.as_ref()).map(|it| Served::from(it.counts())).sum()
    }

    fn planned(&mut self, bytes: u64, stream: u32) -> Option<(usize, At)> {
        if self.memory.is_empty() {
            return None;
        }
        let number = self.streams.number(stream);
        let memory = self.memory.get_mut(number)?;
        let slots = memory.slots.as_mut()?;
        // As a run does without asking, once all streams have their numbers.
        if bytes > self.longest {
            return None;
        }
        let first = memory.first;
        let mut take = |slots: &mut Slots, region: usize| {
            let block = first + region as u32;
            let bytes = asked_for(slots.lengths()[region] as u64);
            self.below.allocate(block, bytes, stream);
            slots.pinned(region, (block as usize + 1) << 40);
        };
        for region in slots.regions_with_slots()..slots.lengths().len() {
            if slots.missing().any(|it| it.0 == region) {
                take(slots, region);
            }
        }
        let needs = |(slot, region)| Lent::Needs(Some(slot), region);
        let lent = match slots.request(0, bytes as usize) {
            Some(taken) => Some(Lent::Slot(taken)),
            None => (slots.take_needed(bytes as usize).map(needs)).or_else(|| {
                let lends = bytes >= LENT_FROM;
                lends.then(|| slots.lend(0, bytes as usize)).flatten()
            }),
        };
        let at = match lent {
            Some(Lent::Slot(it)) => Some(At::Slot(it.slot)),
            Some(Lent::Place(it)) => Some(At::Borrowed(it.address)),
            Some(Lent::Needs(slot, region)) => {
                take(slots, region);
                match slot {
                    Some(slot) => slots.serve_needed(slot).map(|it| At::Slot(it.slot)),
                    None => (slots.lend_any(bytes as usize)).map(|it| At::Borrowed(it.address)),
                }
            }
            None => None,
        };
        at.map(|it| (number, it))
    }

    /// The block was freed, and other streams still use it.
    fn defer(&mut self, number: usize, at: At) {
        if let Some(slots) = &mut self.memory[number].slots {
            match at {
                At::Slot(slot) => slots.set_pending(slot, true),
                At::Borrowed(address) => slots.set_pending_at(address, true),
            }
        }
    }

    fn release(&mut self, number: usize, at: At) {
        if let Some(slots) = &mut self.memory[number].slots {
            let held = match at {
                At::Slot(slot) => slots.release(slot),
                At::Borrowed(address) => slots.give_back(address),
            };
            debug_assert!(held, "a place was released twice");
        }
    }

    fn live(&mut self, block: u32) -> Option<&mut Live> {
        self.live.get_mut(block as usize)?.as_mut()
    }
}

impl Device for Planned {
    fn allocate(&mut self, block: u32, bytes: u64, stream: u32) {
        if bytes >= self.threshold
            && let Some((number, at)) = self.planned(bytes, stream)
        {
            *place(&mut self.live, block) = Some(Live { stream, number, at, shared: false, freed: false });
            return;
        }
        self.below.allocate(self.regions + block, bytes, stream);
    }

    fn use_on(&mut self, block: u32, stream: u32) {
        match self.live(block) {
            Some(live) => live.shared |= live.stream != stream,
            None => self.below.use_on(self.regions + block, stream),
        }
    }

    fn free(&mut self, block: u32) {
        match self.live(block) {
            Some(live) if live.shared => {
                live.freed = true;
                let Live { number, at, .. } = *live;
                self.defer(number, at);
            }
            Some(&mut Live { number, at, .. }) => {
                self.live[block as usize] = None;
                self.release(number, at);
            }
            None => self.below.free(self.regions + block),
        }
    }

    fn complete(&mut self, block: u32) {
        match self.live(block) {
            Some(&mut Live { number, at, freed, .. }) => {
                if freed {
                    self.live[block as usize] = None;
                    self.release(number, at);
                }
            }
            None => self.below.complete(self.regions + block),
        }
    }

    fn clear(&mut self) {
        for block in 0..self.live.len() {
            if self.live[block].is_some_and(|it| it.freed) {
                self.complete(block as u32);
            }
        }
        for memory in &mut self.memory {
            let idle = memory.slots.as_mut().map(Slots::take_idle);
            for (region, _) in idle.unwrap_or_default() {
                self.below.free(memory.first + region as u32);
            }
        }
        self.below.clear();
    }

    fn usage(&self) -> Usage {
        self.below.usage()
    }

    fn audit(&self) -> Result<(), String> {
        self.below.audit()
    }
}

#[cfg(test)]
mod tests {
    use pinbuddy_slots::{GRANULE, Lane, Slot};

    use super::*;
    use crate::Kind;

    #[test]
    fn nothing_else_lies_in_the_segment_of_a_long_region() {
        for bytes in (LARGE as usize..LARGE as usize * 2).step_by(GRANULE) {
            let slot = Slot { bytes, region: 0, offset: 0 };
            let lane = Lane { period: vec![0], ..Lane::default() };
            let layout = Layout { regions: vec![bytes], slots: vec![slot], lanes: vec![lane] };
            let mut it = Planned::new(Kind::Torch.model(), 1, &[Some(layout)]).unwrap();
            it.allocate(0, bytes as u64, 0);
            assert_eq!(it.counts().hits, 1);
            let Usage { reserved, allocated, .. } = it.usage();
            assert_eq!((reserved, reserved - allocated), (asked_for(bytes as u64), 0));
        }
    }
}
