//! The thread caches in front of the engine, as in `cxx-bridge/cpp/block_cache`: a freed block stays
//! whole for the next request of exactly its size.
//!
//! A block returns to the cache of the thread that it was taken for, if that thread had asked for the
//! size before. A request that no cached block serves is cut beside them, from a segment in use; all
//! caches are flushed if no such segment has room, and once many sizes were new.
//!
//! Left out: the allocator remembers requests that were refused for want of budget, leaves their like to
//! stock and flushes nothing; here each of them flushes.
//!
//! Invariants: to the engine a cached block is live; while caching is paused nothing is cached.

use std::collections::BTreeMap;

use pinbuddy_core::{Block, Cached, GRANULE, MAX_REGION};

use super::{Held, World};

/// Caches are flushed once there were so many new sizes for each cached block.
const NEWS_A_BLOCK: usize = 4;
/// A thread remembers so many sizes, then forgets all.
const MOST_SIZES: usize = 1 << 11;
/// Of the hash of such a size.
const HASH_BITS: u32 = 15;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Caches {
    /// By thread; none where nothing is ever cached.
    threads: Vec<ThreadCache>,
    /// How many requests pause caching.
    paused: u32,
    /// Sizes that were new since the last flush.
    news: usize,
    /// Requests that cached blocks have served since, and their bytes.
    served: (u64, u64),
    blocks: usize,
    bytes: usize,
    /// Blocks by the power of two that holds their size.
    alike: [usize; usize::BITS as usize + 1],
}

#[derive(Debug, Default)]
struct ThreadCache {
    /// By size, in the order of the allocator's bins. Those that were cached before stay.
    blocks: BTreeMap<(u64, usize), Vec<Block>>,
    asked: Asked,
}

/// The sizes that a thread has asked for, by their hashes.
#[derive(Debug)]
struct Asked {
    /// A bit for each hash.
    bits: Vec<u64>,
    count: usize,
}

impl Default for Asked {
    fn default() -> Self {
        let bits = vec![0; 1 << (HASH_BITS - 6)];
        Self { bits, count: 0 }
    }
}

impl Asked {
    fn clear(&mut self) {
        self.bits.fill(0);
        self.count = 0;
    }

    /// Whether it was there before; with many sizes sometimes wrong.
    fn insert(&mut self, bytes: usize) -> bool {
        let hash = hash(bytes, HASH_BITS);
        let (word, bit) = ((hash / 64) as usize, 1 << (hash % 64));
        if self.bits[word] & bit != 0 {
            return true;
        }
        if self.count == MOST_SIZES {
            self.clear();
        }
        self.bits[word] |= bit;
        self.count += 1;
        false
    }
}

/// The power of two, in granules, that holds so many bytes.
fn power(bytes: usize) -> usize {
    bytes.div_ceil(GRANULE).next_power_of_two().trailing_zeros() as usize
}

/// The upper bits of a size's hash.
fn hash(bytes: usize, bits: u32) -> u64 {
    (bytes as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits)
}

fn key(bytes: usize) -> (u64, usize) {
    (hash(bytes, 9), bytes)
}

impl ThreadCache {
    fn take(&mut self, bytes: usize) -> Option<Block> {
        self.blocks.get_mut(&key(bytes))?.pop()
    }
}

impl Caches {
    /// One for each thread.
    pub(super) fn new(threads: usize) -> Self {
        Self {
            threads: (0..threads).map(|_| ThreadCache::default()).collect(),
            paused: 0,
            news: 0,
            served: (0, 0),
            blocks: 0,
            bytes: 0,
            alike: [0; usize::BITS as usize + 1],
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A block of exactly `bytes` bytes from the thread's cache or, if it has asked for the size before,
    /// from any; and whether it has.
    fn take(&mut self, thread: usize, bytes: usize) -> (Option<Block>, bool) {
        let own = &mut self.threads[thread];
        let mut found = own.take(bytes);
        let again = found.is_some() || own.asked.insert(bytes);
        if found.is_none() && again {
            found = self.threads.iter_mut().find_map(|it| it.take(bytes));
        }
        if found.is_some() {
            self.served = (self.served.0 + 1, self.served.1 + bytes as u64);
            self.blocks -= 1;
            self.bytes -= bytes;
            self.alike[power(bytes)] -= 1;
        }
        (found, again)
    }

    /// Caches the block, if it may be cached; returns whether.
    fn put(&mut self, held: Held, block: Block) -> bool {
        let caches = held.again && self.paused == 0;
        if caches {
            self.blocks += 1;
            self.bytes += block.bytes;
            self.alike[power(block.bytes)] += 1;
            let cache = &mut self.threads[usize::from(held.thread)].blocks;
            cache.entry(key(block.bytes)).or_default().push(block);
        }
        caches
    }

    /// A new size is asked for; returns whether to flush.
    fn is_worth_a_flush(&mut self) -> bool {
        self.news += 1;
        self.blocks > 0 && self.news >= NEWS_A_BLOCK * self.blocks
    }

    /// What is cached, for a request of `bytes` bytes.
    fn cached(&self, bytes: usize) -> Cached {
        Cached { bytes: self.bytes, alike: self.alike[power(bytes)] }
    }

    /// All cached blocks, in the order in which the allocator releases them.
    fn flush(&mut self) -> Vec<Block> {
        (self.news, self.served, self.blocks, self.bytes) = (0, (0, 0), 0, 0);
        self.alike.fill(0);
        let mut flushed = Vec::new();
        for cache in self.threads.iter_mut().rev() {
            let before = flushed.len();
            for blocks in cache.blocks.values_mut().rev() {
                flushed.append(blocks);
            }
            // Sizes that come again have their places ready; passing over those that do not takes longer than that saves.
            if cache.blocks.len() > 2 * (flushed.len() - before) {
                cache.blocks.clear();
            }
        }
        flushed
    }
}

impl World {
    /// A cached block for a thread's request, or one cut beside cached blocks. If there is none, caching
    /// is paused until the request has ended.
    pub(super) fn before_the_engine(&mut self, index: usize, bytes: usize) -> Option<Held> {
        let engines = self.threshold.max(1)..=MAX_REGION;
        if self.caches.threads.is_empty() || !engines.contains(&bytes) {
            return None;
        }
        let rounded = bytes.div_ceil(GRANULE) * GRANULE;
        let (cached, again) = self.caches.take(index, rounded);
        self.lanes[index].again = again;
        if let Some(block) = cached {
            return Some(Held::of(block, index, again));
        }
        if !again && self.caches.is_worth_a_flush() {
            self.flush();
        }
        let mut found = self.beside(bytes);
        if found.is_none() {
            self.pause(index);
            if self.caches.blocks > 0 {
                self.flush();
                found = self.beside(bytes);
            }
            self.reap();
        }
        found.map(|block| Held::of(block, index, again))
    }

    /// A block cut from a segment in use.
    fn beside(&mut self, bytes: usize) -> Option<Block> {
        let cached = self.caches.cached(bytes);
        self.provisioner.engine_mut().request_beside(bytes, cached)
    }

    fn pause(&mut self, index: usize) {
        self.caches.paused += 1;
        self.lanes[index].pauses = true;
    }

    /// The thread's request has ended: it pauses caching no longer.
    pub(super) fn resume(&mut self, index: usize) {
        if std::mem::take(&mut self.lanes[index].pauses) {
            self.caches.paused -= 1;
        }
    }

    /// The user and the streams are done with the block: caches or releases it.
    #[inline]
    pub(super) fn end_use(&mut self, held: Held, block: Block) {
        if !self.caches.put(held, block) {
            self.release(block);
        }
    }

    /// Releases all cached blocks.
    pub(super) fn flush(&mut self) {
        let (blocks, bytes) = self.caches.served;
        self.provisioner.engine_mut().reused(blocks, bytes);
        for block in self.caches.flush() {
            self.release(block);
        }
    }

    /// The same, and forgets the sizes that threads have asked for.
    pub(super) fn clear_caches(&mut self) {
        self.flush();
        for cache in &mut self.caches.threads {
            cache.asked.clear();
        }
    }
}
