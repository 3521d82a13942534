//! PyTorch's caching host allocator (2.15), as a model.
//!
//! A request is rounded up to a power of two, unless it is above `pinned_max_round_threshold_mb`. Freed
//! blocks are in lists by the power of two that holds them; a request takes from its list the block
//! freed last that is long enough. Nothing is split. `empty_cache` unpins all blocks in the lists.
//! `pinned_max_cached_size_mb`, graph pools and the reserve segment are not modelled: none does anything
//! by default.

use super::{Change, Changes, Order, Pending, Pins, Place, Policy, place};
use crate::streams::Until;

/// See the module's documentation.
#[derive(Debug)]
pub struct Stock {
    /// The longest request that is rounded up, in bytes.
    round_up_to: u64,
    /// By the block's number; of no bytes if stock does not have it.
    blocks: Vec<Place>,
    /// Free blocks, by the power of two that holds them; the last freed is the last.
    free: [Vec<Place>; 64],
    pending: Pending<Place>,
    /// Where the next block is pinned.
    next: u64,
    changes: Changes,
    /// A capture is under way: no event is queried.
    held_back: bool,
    pins: Pins,
}

/// Above all that a model with stock beside it pins itself.
const FIRST: u64 = 1 << 52;

impl Default for Stock {
    fn default() -> Self {
        Self::rounding_up_to(u64::MAX)
    }
}

impl Stock {
    /// Stock that rounds requests of up to `bytes` bytes up to powers of two.
    pub fn rounding_up_to(bytes: u64) -> Self {
        Self {
            round_up_to: bytes,
            blocks: Vec::new(),
            free: std::array::from_fn(|_| Vec::new()),
            pending: Pending::new(Order::OneQueue),
            next: FIRST,
            changes: Changes::default(),
            held_back: false,
            pins: Pins::default(),
        }
    }

    /// Whether events are held back, and not queried, from now on.
    pub(crate) fn hold_back(&mut self, held_back: bool) {
        self.held_back = held_back;
    }

    #[inline]
    fn reap(&mut self, at: u64) {
        if !self.held_back && !self.pending.is_empty() {
            while let Some(place) = self.pending.pop(at) {
                self.cache(place);
            }
        }
    }

    fn cache(&mut self, place: Place) {
        self.free[list_of(place.bytes)].push(place);
    }

    fn pin(&mut self, bytes: u64) -> Place {
        self.pins.pin(bytes);
        let address = self.next;
        self.next = address.saturating_add(bytes);
        let place = Place { address, bytes };
        self.changes.note(place, true);
        place
    }
}

/// The list for blocks of `length` bytes: upstream's `Log2_64_Ceil`.
#[inline]
fn list_of(length: u64) -> usize {
    length.next_power_of_two().trailing_zeros() as usize
}

impl Policy for Stock {
    fn allocate(&mut self, at: u64, block: u32, bytes: u64) -> bool {
        self.reap(at);
        let length = match bytes <= self.round_up_to {
            true => bytes.next_power_of_two(),
            false => bytes,
        };
        let list = &mut self.free[list_of(length)];
        let found = list.iter().rposition(|free| free.bytes >= length);
        *place(&mut self.blocks, block) = match found {
            Some(found) => list.remove(found),
            None => self.pin(length),
        };
        found.is_none()
    }

    fn free(&mut self, block: u32, until: &[Until]) {
        let place = std::mem::take(&mut self.blocks[block as usize]);
        if until.is_empty() {
            self.cache(place);
        } else {
            self.pending.push(place, until);
        }
    }

    fn clear(&mut self, at: u64) {
        self.reap(at);
        for place in self.free.iter_mut().flat_map(|list| list.drain(..)) {
            self.pins.unpin(place.bytes);
            self.changes.note(place, false);
        }
    }

    fn pins(&self) -> Pins {
        self.pins
    }

    fn place(&self, block: u32) -> Option<Place> {
        let place = self.blocks.get(block as usize).copied();
        place.filter(|it| it.bytes > 0)
    }

    fn watch(&mut self) {
        self.changes.watch();
    }

    fn changes(&mut self) -> Vec<Change> {
        self.changes.take()
    }

    fn audit(&self) -> Result<(), String> {
        let places = self.free.iter().flatten().chain(&self.blocks);
        let places = places.chain(self.pending.iter());
        let (found, expected) = (places.map(|it| it.bytes).sum::<u64>(), self.pins.bytes);
        if found != expected {
            return Err(format!("{found} bytes in blocks, {expected} pinned"));
        }
        for (list, lengths) in self.free.iter().enumerate() {
            if let Some(place) = lengths.iter().find(|it| list_of(it.bytes) != list) {
                return Err(format!("{} bytes in list {list}", place.bytes));
            }
        }
        Ok(())
    }
}
