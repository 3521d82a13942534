//! What a program asked of the device's allocator, out of a snapshot that PyTorch wrote, and what it had reserved.
//!
//! A snapshot says neither which streams used a block nor that the cache was emptied. A free that is not complete at once
//! waits for other streams; memory that is given back to the driver piece after piece counts as an emptied cache, though
//! a request that the driver refused at first gives memory back, too: histories of full devices are off by some per cent. Memory that was handed out before the history begins is left
//! out.

use std::collections::HashMap;

use pinbuddy_snapshot::{Action, Entry};

use super::{Act, Device as _, Settings, Torch};

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
        let mut history = Self::default();
        let mut blocks: HashMap<u64, u32> = HashMap::new();
        let mut vacant = Vec::new();
        let mut reserved = 0_u64;
        let mut giving_back = false;
        let mut entries = entries.iter().peekable();
        while let Some(entry) = entries.next() {
            let &Entry {
                address,
                bytes,
                stream,
                ..
            } = entry;
            let gives_back = entry.action == Action::SegmentFree;
            match entry.action {
                Action::Alloc => {
                    let most = blocks.len() as u32; // an entry each, so there are fewer
                    let block = vacant.pop().unwrap_or(most);
                    blocks.insert(address, block);
                    history.put(
                        Act::Alloc {
                            block,
                            bytes,
                            stream,
                        },
                        reserved,
                    );
                }
                Action::FreeRequested => {
                    let at_once = |next: &&Entry| {
                        next.action == Action::FreeCompleted && next.address == address
                    };
                    if let Some(block) = blocks.get(&address).copied() {
                        if entries.next_if(at_once).is_some() {
                            blocks.remove(&address);
                            vacant.push(block);
                        } else {
                            let stream = ELSEWHERE;
                            history.put(Act::Use { block, stream }, reserved);
                        }
                        history.put(Act::Free { block }, reserved);
                    }
                }
                Action::FreeCompleted => {
                    if let Some(block) = blocks.remove(&address) {
                        vacant.push(block);
                        history.put(Act::Complete { block }, reserved);
                    }
                }
                Action::SegmentAlloc => {
                    reserved += bytes;
                    history.peak_reserved = history.peak_reserved.max(reserved);
                }
                Action::SegmentFree => {
                    reserved = reserved.saturating_sub(bytes);
                    if !giving_back {
                        history.put(Act::Clear, reserved);
                    }
                    if let Some(last) = history.reserved.last_mut() {
                        *last = reserved;
                    }
                }
            }
            giving_back = gives_back;
        }
        history
    }

    fn put(&mut self, act: Act, reserved: u64) {
        self.acts.push(act);
        self.reserved.push(reserved);
    }

    /// Replays it on a model.
    pub fn compare(&self, settings: Settings) -> Agreement {
        let mut model = Torch::new(settings);
        let mut differs = None;
        for (number, (act, seen)) in self.acts.iter().zip(&self.reserved).enumerate() {
            // What is refused here was not refused there, and shows in what is reserved.
            let _ = super::replay::apply(&mut model, *act);
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
