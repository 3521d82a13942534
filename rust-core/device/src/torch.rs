//! The allocator itself.
//!
//! Requests are rounded up to 512 bytes. Up to 1 MiB they come from the small pool, which asks the driver for segments of
//! 2 MiB; larger ones from the large pool, which asks for 20 MiB below 10 MiB and else for whole 2 MiB. Free blocks belong
//! to a stream; the best fit serves, and among equals the one in the
//! oldest segment, at the lowest address. It is split if more than 1 MiB would be left over, or
//! 512 bytes in the small pool and in expandable segments. Freed blocks merge with free neighbours at once, but for
//! those that other streams use: they are looked at again at the next request. When the driver has no memory, cached
//! segments are given back, and the request is tried once more.

use super::MIB;
use super::blocks::{Block, Blocks, Id, Pool, State};
use super::driver::Driver;
use super::place;
use super::{Device, OutOfMemory, Settings, Usage};

/// What sizes are rounded up to.
const UNIT: u64 = 512;
/// The largest small request.
const SMALL: u64 = MIB;
/// A segment of the small pool; large ones are rounded up to as much.
const SEGMENT: u64 = 2 * MIB;
/// From here on a large request has a segment of its own size.
const LARGE: u64 = 10 * MIB;
/// Segments of the large pool below.
const SHARED: u64 = 20 * MIB;
/// A block that is too large to be split may be so much larger than the request that it serves.
const SLACK: u64 = 20 * MIB;

/// See the module's documentation.
#[derive(Debug)]
pub struct Torch {
    pub(super) settings: Settings,
    pub(super) driver: Driver,
    pub(super) blocks: Blocks,
    /// By the program's number.
    live: Vec<Option<Live>>,
    /// Freed blocks whose events are complete, as the next request will see.
    complete: Vec<u32>,
    usage: Usage,
}

#[derive(Clone, Copy, Debug)]
struct Live {
    id: Id,
    /// Whether another stream used it.
    shared: bool,
}

impl Torch {
    /// With nothing reserved.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            driver: Driver::new(settings.capacity),
            blocks: Blocks::default(),
            live: Vec::new(),
            complete: Vec::new(),
            usage: Usage::default(),
        }
    }

    /// Take memory of the driver's, in so many calls.
    pub(super) fn take(&mut self, bytes: u64, calls: u64) -> Option<()> {
        if !self.driver.take(bytes) {
            return None;
        }
        self.usage.reserved += bytes;
        self.usage.peak_reserved = self.usage.peak_reserved.max(self.usage.reserved);
        self.usage.taken += calls;
        Some(())
    }

    pub(super) fn give_back(&mut self, bytes: u64, calls: u64) {
        self.driver.give_back(bytes);
        self.usage.reserved -= bytes;
        self.usage.given_back += calls;
    }

    /// A cached block that serves a request, taken out of its list.
    fn cached(&mut self, pool: Pool, stream: u32, bytes: u64) -> Option<Id> {
        let found = self.best_fit(pool, stream, bytes)?;
        self.blocks.unlist(found);
        Some(found)
    }

    fn best_fit(&self, pool: Pool, stream: u32, bytes: u64) -> Option<Id> {
        let mut fits = self.blocks.fits(pool, stream, bytes);
        let mut found = fits.next()?;
        if self.settings.expandable {
            // The end of a range counts as large as it can grow, so that what cannot grow is taken first.
            for next in fits {
                if self.room(next) >= self.room(found) {
                    break;
                }
                found = next;
            }
        }
        let (length, limit) = (self.blocks.get(found).bytes, self.settings.max_split_size);
        let fits = if bytes < limit {
            length < limit
        } else {
            length < bytes.saturating_add(SLACK)
        };
        fits.then_some(found)
    }

    /// A block's bytes, with the unmapped ones behind it.
    fn room(&self, id: Id) -> u64 {
        let block = self.blocks.get(id);
        let behind = block.after.map(|it| self.blocks.get(it));
        block.bytes
            + behind
                .filter(|it| it.state == State::Unmapped)
                .map_or(0, |it| it.bytes)
    }

    /// A block of new memory, in no list.
    fn fresh(&mut self, pool: Pool, stream: u32, bytes: u64) -> Option<Id> {
        if self.settings.expandable {
            return self.expand(pool, stream, bytes);
        }
        let length = match pool {
            Pool::Small => SEGMENT,
            Pool::Large if bytes < LARGE => SHARED,
            Pool::Large => bytes.next_multiple_of(SEGMENT),
        };
        self.take(length, 1)?;
        let address = self.driver.reserve(length);
        Some(self.blocks.add(Block {
            address,
            bytes: length,
            stream,
            pool,
            state: State::Free,
            range: None,
            before: None,
            after: None,
        }))
    }

    fn splits(&self, block: &Block, bytes: u64) -> bool {
        let rest = block.bytes - bytes;
        if block.pool == Pool::Small || self.settings.expandable {
            rest >= UNIT
        } else {
            bytes < self.settings.max_split_size && rest > SMALL
        }
    }

    /// Give back as few of the blocks that are too large to be split as make room; false if they do not.
    fn release_oversize(&mut self, pool: Pool, stream: u32, bytes: u64) -> bool {
        let limit = self.settings.max_split_size;
        // PyTorch leaves expandable segments out.
        if limit == u64::MAX || self.settings.expandable {
            return false;
        }
        let wanted = bytes.max(limit);
        let large_enough = self.blocks.fits(pool, stream, wanted).next();
        if let Some(id) = large_enough {
            self.release(id);
            return true;
        }
        let below: Vec<Id> = self.blocks.below(pool, stream, wanted).collect();
        let mut released = 0;
        for id in below {
            let length = self.blocks.get(id).bytes;
            if released >= wanted || length < limit {
                break;
            }
            released += length;
            self.release(id);
        }
        released >= wanted
    }

    /// Give back a free block that is a whole segment.
    fn release(&mut self, id: Id) {
        let bytes = self.blocks.get(id).bytes;
        self.blocks.unlist(id);
        self.blocks.forget(id);
        self.give_back(bytes, 1);
    }

    /// Wait for all streams, then give back whatever is idle.
    fn release_all(&mut self) {
        self.complete = (0..)
            .zip(&self.live)
            .filter_map(|(block, live)| {
                let pending = self.blocks.get((*live)?.id).state == State::Pending;
                pending.then_some(block)
            })
            .collect();
        self.reap();
        for pool in [Pool::Large, Pool::Small] {
            for id in self.blocks.free(pool) {
                let block = self.blocks.get(id);
                if block.range.is_some() {
                    self.unmap(id);
                } else if block.is_whole() {
                    self.release(id);
                }
            }
        }
    }

    /// Blocks whose events are complete are free.
    fn reap(&mut self) {
        for block in std::mem::take(&mut self.complete) {
            if let Some(live) = self.live[block as usize].take() {
                self.put_back(live.id);
            }
        }
    }

    fn put_back(&mut self, id: Id) {
        let block = self.blocks.get_mut(id);
        self.usage.active -= block.bytes;
        block.state = State::Free;
        self.blocks.merge(id);
        self.blocks.list(id);
    }
}

impl Device for Torch {
    fn allocate(&mut self, block: u32, bytes: u64, stream: u32) -> Result<(), OutOfMemory> {
        self.reap();
        let bytes = bytes.next_multiple_of(UNIT);
        let pool = if bytes <= SMALL {
            Pool::Small
        } else {
            Pool::Large
        };
        let mut found = self
            .cached(pool, stream, bytes)
            .or_else(|| self.fresh(pool, stream, bytes));
        if found.is_none() && self.release_oversize(pool, stream, bytes) {
            found = self.fresh(pool, stream, bytes);
        }
        if found.is_none() {
            self.release_all();
            found = self.fresh(pool, stream, bytes);
        }
        let id = found.ok_or(OutOfMemory)?;
        if self.splits(self.blocks.get(id), bytes) {
            let rest = self.blocks.cut(id, bytes);
            self.blocks.list(rest);
        }
        let chosen = self.blocks.get_mut(id);
        chosen.state = State::Live;
        self.usage.allocated += chosen.bytes;
        self.usage.active += chosen.bytes;
        *place(&mut self.live, block) = Some(Live { id, shared: false });
        Ok(())
    }

    fn use_on(&mut self, block: u32, stream: u32) {
        if let Some(Some(live)) = self.live.get_mut(block as usize) {
            live.shared |= self.blocks.get(live.id).stream != stream;
        }
    }

    fn free(&mut self, block: u32) {
        let Some(Live { id, shared }) = self.live.get(block as usize).copied().flatten() else {
            return;
        };
        let chosen = self.blocks.get_mut(id);
        if chosen.state != State::Live {
            return;
        }
        self.usage.allocated -= chosen.bytes;
        if shared {
            chosen.state = State::Pending;
        } else {
            self.live[block as usize] = None;
            self.put_back(id);
        }
    }

    fn complete(&mut self, block: u32) {
        let live = self.live.get(block as usize).copied().flatten();
        if live.is_some_and(|it| self.blocks.get(it.id).state == State::Pending) {
            self.complete.push(block);
        }
    }

    fn clear(&mut self) {
        self.release_all();
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn audit(&self) -> Result<(), String> {
        self.blocks.audit()?;
        let sum = |states: &[State]| -> u64 {
            let blocks = self.blocks.iter().map(|it| it.1);
            blocks
                .filter(|it| states.contains(&it.state))
                .map(|it| it.bytes)
                .sum()
        };
        let live = sum(&[State::Live]);
        let active = live + sum(&[State::Pending]);
        let Usage {
            reserved,
            allocated,
            active: counted,
            ..
        } = self.usage;
        let found = (active + sum(&[State::Free]), live, active);
        if found != (reserved, allocated, counted) {
            return Err(format!("{found:?} bytes in blocks, {:?}", self.usage));
        }
        let named = self.live.iter().flatten().count();
        let held = self
            .blocks
            .iter()
            .filter(|it| matches!(it.1.state, State::Live | State::Pending));
        let held = held.count();
        if named != held {
            return Err(format!("{held} blocks are held, {named} have names"));
        }
        Ok(())
    }
}
