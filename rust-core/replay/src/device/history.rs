//! What a program asked of the device's allocator, out of a snapshot that PyTorch wrote, and what it had reserved.
//!
//! A snapshot says neither which streams used a block nor that the cache was emptied. A free that is not complete at once
//! waits for other streams; memory that is given back to the driver piece after piece counts as an emptied cache, though
//! a request that the driver refused at first gives memory back, too: histories of full devices are off by some per cent. Memory that was handed out before the history begins is left
//! out.

use std::collections::HashMap;

use pinbuddy_snapshot::{Action, Entry};

use super::{Act, Device as _, Kind};

/// Other streams, of which a snapshot does not speak: no request is on it.
const ELSEWHERE: u32 = u32::MAX;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct History {
    /// What the program did.
    pub acts: Vec<Act>,
    /// For each act: bytes reserved once it was done.
    pub reserved: Vec<u64>,
    /// The most that was reserved at one moment.
    pub peak_reserved: u64,
}

/// How a model fared beside a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// The first act after which another amount was reserved: its number, and both amounts.
    pub differs: Option<(usize, u64, u64)>,
    /// The model's, and the history's.
    pub peak: (u64, u64),
    /// Reserved at the end: the model's, and the history's.
    pub end: (u64, u64),
}

impl History {
    /// The history of one device's entries.
    pub fn of(entries: &[Entry]) -> Self {
        let mut reading = Reading::default();
        let mut giving_back = false;
        let mut entries = entries.iter().peekable();
        while let Some(entry) = entries.next() {
            let at_once = |next: &&Entry| next.action == Action::FreeCompleted && next.address == entry.address;
            match entry.action {
                Action::Alloc => reading.allocate(entry),
                Action::FreeRequested => {
                    let is_complete = entries.next_if(at_once).is_some();
                    reading.free(entry.address, is_complete);
                }
                Action::FreeCompleted => reading.complete(entry.address),
                Action::SegmentAlloc => reading.reserve(entry.bytes),
                Action::SegmentFree => reading.give_back(entry.bytes, !giving_back),
            }
            giving_back = entry.action == Action::SegmentFree;
        }
        reading.history
    }

    /// Replays it on a model.
    pub fn compare(&self, kind: Kind) -> Agreement {
        let mut model = kind.model();
        let mut differs = None;
        for (number, (act, seen)) in self.acts.iter().zip(&self.reserved).enumerate() {
            super::replay::apply(&mut model, *act);
            let reserved = model.usage().reserved;
            if reserved != *seen && differs.is_none() {
                differs = Some((number, reserved, *seen));
            }
        }
        let usage = model.usage();
        Agreement {
            differs,
            peak: (usage.peak_reserved, self.peak_reserved),
            end: (usage.reserved, self.reserved.last().copied().unwrap_or(0)),
        }
    }
}

/// A history as far as its entries are read.
#[derive(Debug, Default)]
struct Reading {
    history: History,
    /// Blocks by their addresses.
    blocks: HashMap<u64, u32>,
    /// Numbers of blocks that are no more.
    vacant: Vec<u32>,
    reserved: u64,
}

impl Reading {
    fn put(&mut self, act: Act) {
        self.history.acts.push(act);
        self.history.reserved.push(self.reserved);
    }

    fn allocate(&mut self, entry: &Entry) {
        let most = self.blocks.len() as u32; // an entry each, so there are fewer
        let block = self.vacant.pop().unwrap_or(most);
        self.blocks.insert(entry.address, block);
        self.put(Act::Alloc { block, bytes: entry.bytes, stream: entry.stream });
    }

    fn free(&mut self, address: u64, is_complete: bool) {
        let Some(&block) = self.blocks.get(&address) else {
            return;
        };
        if is_complete {
            self.blocks.remove(&address);
            self.vacant.push(block);
        } else {
            let stream = ELSEWHERE;
            self.put(Act::Use { block, stream });
        }
        self.put(Act::Free { block });
    }

    fn complete(&mut self, address: u64) {
        if let Some(block) = self.blocks.remove(&address) {
            self.vacant.push(block);
            self.put(Act::Complete { block });
        }
    }

    fn reserve(&mut self, bytes: u64) {
        self.reserved += bytes;
        let peak = &mut self.history.peak_reserved;
        *peak = self.reserved.max(*peak);
    }

    /// A segment goes back to the driver: the `first` in a row is an emptied cache.
    fn give_back(&mut self, bytes: u64, first: bool) {
        self.reserved = self.reserved.saturating_sub(bytes);
        if first {
            self.put(Act::Clear);
        }
        if let Some(last) = self.history.reserved.last_mut() {
            *last = self.reserved;
        }
    }
}
