//! The proposal of pytorch/pytorch#181094, as a model.
//!
//! The first request pins eight blocks of 1 GiB, whatever its size. A request from 4 MB up to a block
//! takes the power of two that holds it from the smallest free block that is long enough, halved as
//! often as possible. A freed part merges with its buddy, if that is free, and so on. A request that
//! finds nothing, or is shorter or longer, is left to stock, and what stock pins stays stock's.
//! `empty_cache` unpins the blocks of 1 GiB that are whole, and they are not pinned again.
//!
//! That is the proposal as written. The defects of its code (buddies by addresses, blocks freed through
//! events that never merge, parts of blocks passed to `cudaFreeHost`) are left out, so that it is
//! compared at its best.

use super::stock::Stock;
use super::{Order, Pending, Pins, Policy, place};
use crate::streams::Until;
use crate::{GIB, MIB};

/// A block of 1 GiB is of this order: log2 of its bytes.
const WHOLE: u32 = 30;
const COUNT: u64 = 8;
const THRESHOLD: u64 = 4 * MIB;

/// A free or taken part: `order` is log2 of its bytes, `at` where it starts. The blocks of 1 GiB are
/// adjacent, so buddies differ in one bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    at: u64,
    order: u32,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Buddy181094 {
    warm: bool,
    /// Starts of free parts, by order; the last freed is the last.
    free: [Vec<u64>; WHOLE as usize + 1],
    blocks: Vec<Option<Part>>,
    pending: Pending<Part>,
    stock: Stock,
    /// Without stock's.
    pins: Pins,
    /// The most that the proposal and stock had pinned together.
    peak: u64,
}

impl Default for Buddy181094 {
    fn default() -> Self {
        Self {
            warm: false,
            free: std::array::from_fn(|_| Vec::new()),
            blocks: Vec::new(),
            // It uses upstream's queue.
            pending: Pending::new(Order::OneQueue),
            stock: Stock::default(),
            pins: Pins::default(),
            peak: 0,
        }
    }
}

impl Buddy181094 {
    fn warm_up(&mut self) {
        self.warm = true;
        for block in (0..COUNT).rev() {
            self.free[WHOLE as usize].push(block * GIB);
            self.pins.pin(GIB);
        }
    }

    fn take(&mut self, bytes: u64) -> Option<Part> {
        let order = bytes.next_power_of_two().trailing_zeros();
        let from = (order..=WHOLE).find(|it| !self.free[*it as usize].is_empty())?;
        let at = self.free[from as usize].pop()?;
        for half in order..from {
            self.free[half as usize].push(at + (1 << half));
        }
        Some(Part { at, order })
    }

    fn give_back(&mut self, Part { mut at, mut order }: Part) {
        while order < WHOLE {
            let buddy = at ^ (1 << order);
            let list = &mut self.free[order as usize];
            let Some(found) = list.iter().position(|free| *free == buddy) else {
                break;
            };
            list.remove(found);
            at &= !(1 << order);
            order += 1;
        }
        self.free[order as usize].push(at);
    }

    fn reap(&mut self, at: u64) {
        while let Some(part) = self.pending.pop(at) {
            self.give_back(part);
        }
    }

    fn note_peak(&mut self) {
        let all = self.pins.bytes.saturating_add(self.stock.pins().bytes);
        self.peak = self.peak.max(all);
    }
}

impl Policy for Buddy181094 {
    fn allocate(&mut self, at: u64, block: u32, bytes: u64) -> bool {
        let mut pinned = !self.warm;
        if pinned {
            self.warm_up();
        }
        self.reap(at);
        let is_its = (THRESHOLD..=GIB).contains(&bytes);
        let part = if is_its { self.take(bytes) } else { None };
        if part.is_none() {
            pinned |= self.stock.allocate(at, block, bytes);
        }
        *place(&mut self.blocks, block) = part;
        self.note_peak();
        pinned
    }

    fn free(&mut self, block: u32, until: &[Until]) {
        match self.blocks[block as usize].take() {
            None => self.stock.free(block, until),
            Some(part) if until.is_empty() => self.give_back(part),
            Some(part) => self.pending.push(part, until),
        }
    }

    fn clear(&mut self, at: u64) {
        self.reap(at);
        self.stock.clear(at);
        for _ in self.free[WHOLE as usize].drain(..) {
            self.pins.unpin(GIB);
        }
    }

    fn pins(&self) -> Pins {
        self.pins.with(self.stock.pins(), self.peak)
    }

    fn audit(&self) -> Result<(), String> {
        self.stock.audit()?;
        let free = (0..).zip(&self.free).flat_map(|(order, starts)| {
            let part = move |at: &u64| Part { at: *at, order };
            starts.iter().map(part)
        });
        let taken = self.blocks.iter().flatten().chain(self.pending.iter());
        let mut parts: Vec<_> = free.chain(taken.copied()).collect();
        parts.sort_unstable_by_key(|part| part.at);
        let sum: u64 = parts.iter().map(|part| 1 << part.order).sum();
        if sum != self.pins.bytes {
            return Err(format!("{sum} bytes in parts, {} pinned", self.pins.bytes));
        }
        let overlap = |it: &&[Part]| it[0].at + (1 << it[0].order) > it[1].at;
        match parts.windows(2).find(overlap) {
            Some(overlap) => Err(format!("{overlap:?} overlap")),
            None => Ok(()),
        }
    }
}
