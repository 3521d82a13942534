//! The allocator itself.
//!
//! Requests are rounded up to 512 bytes. Up to 1 MiB they come from the small pool, which asks the driver for segments of
//! 2 MiB; larger ones from the large pool, which asks for 20 MiB below 10 MiB and else for whole 2 MiB. Free blocks belong
//! to a stream; the best fit serves, and among equals the one in the
//! oldest segment, at the lowest address. It is split if more than 1 MiB would be left over, or
//! 512 bytes in the small pool and in expandable segments. Freed blocks merge with free neighbours at once, but for
//! those that other streams use: they are looked at again at the next request.

use super::MIB;
use super::blocks::{Block, Blocks, Id, Pool, State};
use super::place;
use super::{Device, Usage};

/// What sizes are rounded up to.
const UNIT: u64 = 512;
/// The largest small request.
const SMALL: u64 = MIB;
/// A segment of the small pool; large ones are rounded up to as much.
pub(super) const SEGMENT: u64 = 2 * MIB;
/// From here on a large request has a segment of its own size.
pub(super) const LARGE: u64 = 10 * MIB;
/// A segment of the large pool below: the longest that requests share, in bytes.
pub const SHARED: u64 = 20 * MIB;
/// Where addresses begin.
const FIRST: u64 = 1 << 46;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Torch {
    /// Whether `expandable_segments:True` is set.
    expandable: bool,
    /// Where the next addresses begin.
    next: u64,
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
    pub(super) fn new(expandable: bool) -> Self {
        Self {
            expandable,
            next: FIRST,
            blocks: Blocks::default(),
            live: Vec::new(),
            complete: Vec::new(),
            usage: Usage::default(),
        }
    }

    /// Take memory of the driver's, in so many calls.
    pub(super) fn take(&mut self, bytes: u64, calls: u64) {
        self.usage.reserved += bytes;
        self.usage.peak_reserved = self.usage.peak_reserved.max(self.usage.reserved);
        self.usage.taken += calls;
    }

    /// Addresses that nothing else has: newer ones are higher, since ties between blocks of one size go by the age of
    /// their segments.
    pub(super) fn reserve(&mut self, bytes: u64) -> u64 {
        let address = self.next;
        // After 2^64 bytes of ranges they come again.
        self.next = self.next.wrapping_add(bytes);
        address
    }

    pub(super) fn give_back(&mut self, bytes: u64, calls: u64) {
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
        if self.expandable {
            // The end of a range counts as large as it can grow, so that what cannot grow is taken first.
            for next in fits {
                if self.room(next) >= self.room(found) {
                    break;
                }
                found = next;
            }
        }
        Some(found)
    }

    /// A block's bytes, with the unmapped ones behind it.
    fn room(&self, id: Id) -> u64 {
        let block = self.blocks.get(id);
        let behind = block.after.map(|it| self.blocks.get(it));
        block.bytes + behind.filter(|it| it.state == State::Unmapped).map_or(0, |it| it.bytes)
    }

    /// A block of new memory, in no list.
    fn fresh(&mut self, pool: Pool, stream: u32, bytes: u64) -> Id {
        if self.expandable {
            return self.expand(pool, stream, bytes);
        }
        let length = match pool {
            Pool::Small => SEGMENT,
            Pool::Large if bytes < LARGE => SHARED,
            Pool::Large => bytes.next_multiple_of(SEGMENT),
        };
        self.take(length, 1);
        let address = self.reserve(length);
        self.blocks.add(Block {
            address,
            bytes: length,
            stream,
            pool,
            state: State::Free,
            range: None,
            before: None,
            after: None,
        })
    }

    fn splits(&self, block: &Block, bytes: u64) -> bool {
        let rest = block.bytes - bytes;
        if block.pool == Pool::Small || self.expandable { rest >= UNIT } else { rest > SMALL }
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
    fn allocate(&mut self, block: u32, bytes: u64, stream: u32) {
        self.reap();
        let bytes = bytes.next_multiple_of(UNIT);
        let pool = if bytes <= SMALL { Pool::Small } else { Pool::Large };
        let id = match self.cached(pool, stream, bytes) {
            Some(found) => found,
            None => self.fresh(pool, stream, bytes),
        };
        if self.splits(self.blocks.get(id), bytes) {
            let rest = self.blocks.cut(id, bytes);
            self.blocks.list(rest);
        }
        let chosen = self.blocks.get_mut(id);
        chosen.state = State::Live;
        self.usage.allocated += chosen.bytes;
        self.usage.active += chosen.bytes;
        *place(&mut self.live, block) = Some(Live { id, shared: false });
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
            blocks.filter(|it| states.contains(&it.state)).map(|it| it.bytes).sum()
        };
        let live = sum(&[State::Live]);
        let active = live + sum(&[State::Pending]);
        let Usage { reserved, allocated, active: counted, .. } = self.usage;
        let found = (active + sum(&[State::Free]), live, active);
        if found != (reserved, allocated, counted) {
            return Err(format!("{found:?} bytes in blocks, {:?}", self.usage));
        }
        let named = self.live.iter().flatten().count();
        let held = self.blocks.iter().filter(|it| matches!(it.1.state, State::Live | State::Pending));
        let held = held.count();
        if named != held {
            return Err(format!("{held} blocks are held, {named} have names"));
        }
        Ok(())
    }
}
