//! The engine's interface: policy and statistics on top of the arena.
//!
//! The policy decides about sizes, the arena finds the place, and the answers are counted here. Knows
//! nothing of trees or orders. Every method is a plain state change: no waiting, no I/O. The caller
//! makes and drops a segment's bookkeeping, outside its lock.

use crate::arena::Arena;
use crate::audit;
use crate::demand::Demands;
use crate::error::{AdoptError, Misuse, Violation};
use crate::handover::{IdleSegment, NewSegment};
use crate::kind::Class;
use crate::phases::Phases;
use crate::policy::{Config, Policy, exact_region};
use crate::spread::Spread;
use crate::stats::Stats;
use crate::units::{Block, Granules, MAX_REGION, SegmentId};
use crate::view::{BlockView, SegmentView};

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Hand this out.
    Block(Block),
    /// Nothing fits: outside every lock, pin a region of at least `bytes`; then [`Engine::adopt`] it
    /// and ask again.
    Pin {
        /// Length of a region for this request alone, in bytes; a multiple of [`crate::GRANULE`].
        bytes: usize,
    },
    /// Sizes differ from phase to phase. Outside every lock, unpin what [`Engine::take_stale`]
    /// returns and pin a region of `bytes`; then [`Engine::adopt_working_set`] it and ask again.
    /// Only from an engine that is [`Engine::renewing`].
    Renew {
        /// Length of the region, in bytes, a multiple of [`crate::GRANULE`]; 0 for no region.
        bytes: usize,
    },
    /// Not the engine's: serve it as if there were no engine.
    PassThrough,
}

/// What a caller has in its caches while it asks for a block. The engine counts cached blocks as live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cached {
    /// Bytes of all cached blocks.
    pub bytes: usize,
    /// Cached blocks whose sizes have the power of two of the request's: stock would serve it with them.
    pub alike: usize,
}

/// Which idle regions may be unpinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// Segments first, then dedicated regions.
    All,
    /// Segments only.
    Segments,
}

/// Decides which pinned memory serves which request. See the crate's documentation.
#[derive(Debug)]
pub struct Engine {
    pub(crate) policy: Policy,
    pub(crate) arena: Arena,
    phases: Phases,
    /// Regions that were let go and are still pinned, and counted as pinned.
    leaving: Vec<IdleSegment>,
    /// Whether small and large blocks share segments, and take the shortest run.
    mixing: bool,
    spread: Spread,
    pub(crate) demands: Demands,
    /// Without `idle_bytes` and `largest_free_run_bytes`, which are computed when asked for.
    pub(crate) stats: Stats,
}

impl Engine {
    /// An engine with nothing pinned.
    pub fn new(config: Config) -> Self {
        Self {
            policy: Policy::new(&config),
            arena: Arena::default(),
            phases: Phases::off(),
            leaving: Vec::new(),
            mixing: false,
            spread: Spread::default(),
            demands: Demands::default(),
            stats: Stats::default(),
        }
    }

    /// The same engine, which cuts small and large blocks from the same segments, each from the shortest free run
    /// that holds it: where all that is needed is one segment, which is unpinned at the end or never.
    #[must_use]
    pub fn mixing(self) -> Self {
        Self { mixing: true, ..self }
    }

    #[inline]
    fn class(&self, bytes: usize) -> Class {
        if self.mixing { Class::Large } else { Class::of(bytes) }
    }

    /// Decides on a request of `bytes` bytes. Empty ones, those below the threshold and those
    /// above [`crate::MAX_REGION`] pass through.
    ///
    /// A block comes from the fullest segment of the request's class (small below [`crate::SMALL`],
    /// else large) that has room, else from a wholly idle segment, at the lowest offset. O(log n) in
    /// the size of the segment, plus a scan of the class's segments whose free memory is long enough
    /// but fragmented.
    ///
    /// A request longer than a segment gets the smallest idle dedicated region that holds it, if that
    /// is at most an eighth longer than the request. O(log S) in the number of dedicated regions.
    #[inline]
    pub fn request(&mut self, bytes: usize) -> Decision {
        let Some(granules) = self.policy.serves(bytes) else {
            self.stats.pass_through += 1;
            return Decision::PassThrough;
        };
        if self.policy.is_dedicated(granules) {
            return self.request_dedicated(granules);
        }
        let class = self.class(bytes);
        if self.phases.notices(self.used_bytes(), granules.bytes() as u64)
            && let Some(decision) = self.at_phase_end(granules, class)
        {
            return decision;
        }
        match self.arena.take(granules, class) {
            Some(block) => self.hit(block),
            None => self.miss(granules),
        }
    }

    /// A block for a request while the caller has `cached` in its caches. Only from a segment that the request's class is
    /// using, unless sizes mix, or the caches have too little room with that ([`Spread`]). On `None`, the caller releases its cached blocks and calls
    /// [`Self::request`]; always at low water, and for requests longer than a segment. Counts no miss.
    #[inline]
    pub fn request_beside(&mut self, bytes: usize, cached: Cached) -> Option<Block> {
        let granules = self.policy.serves(bytes)?;
        if self.policy.is_dedicated(granules) {
            return None;
        }
        if self.is_at_low_water(granules.bytes() as u64, cached.bytes as u64) {
            return None;
        }
        let class = self.class(bytes);
        let idle_too = self.mixing || self.spread.is_on();
        let block = if idle_too { self.arena.take(granules, class) } else { self.arena.take_in_use(granules, class) };
        self.spread.cut(block.is_some());
        let block = block?;
        self.count(block, cached);
        Some(block)
    }

    /// The caches are flushed: counts requests that cached blocks have served since they were last, and the bytes of those
    /// blocks.
    pub fn reused(&mut self, blocks: u64, bytes: u64) {
        self.stats.reused(blocks, bytes);
        let roomy = 2 * self.largest_set() <= self.pinned_bytes();
        self.spread.flushed(blocks, roomy);
    }

    /// Pending to cached: the block's events are complete, and the caller caches it. A cached block
    /// counts as live until it is released.
    ///
    /// # Errors
    ///
    /// [`Misuse`] where `block` is not a pending block; nothing was changed.
    #[inline]
    pub fn cache(&mut self, block: Block) -> Result<(), Misuse> {
        self.arena.cache(block)?;
        self.stats.block_cached(block.bytes as u64);
        Ok(())
    }

    /// [`Self::request`] for a request longer than a segment. A function of its own: with one path for
    /// both, the compiler passes the block through memory, which adds a third to the usual case.
    #[cold]
    fn request_dedicated(&mut self, granules: Granules) -> Decision {
        let most = self.policy.largest_dedicated(granules);
        match self.arena.take_dedicated(granules, most) {
            Some(block) => self.hit(block),
            None => self.miss(granules),
        }
    }

    #[inline]
    fn hit(&mut self, block: Block) -> Decision {
        self.count(block, Cached::default());
        Decision::Block(block)
    }

    /// Counts a block that was taken at the home in turn, while the caller has `cached` of it in its caches.
    #[inline]
    fn count(&mut self, block: Block, cached: Cached) {
        let bytes = block.bytes as u64;
        self.stats.block_lent(bytes);
        self.demands.of_mut(self.arena.home()).taken(bytes, cached);
    }

    #[cold]
    fn miss(&mut self, granules: Granules) -> Decision {
        self.stats.misses += 1;
        Decision::Pin { bytes: exact_region(granules.bytes()).unwrap_or(MAX_REGION) }
    }

    /// [`Self::request`] for a request that was already counted as a miss.
    pub(crate) fn ask_again(&mut self, bytes: usize) -> Decision {
        let misses = self.stats.misses;
        let decision = self.request(bytes);
        self.stats.misses = misses;
        decision
    }

    /// A block that fits less well, for a request that [`Self::request`] answered with
    /// [`Decision::Pin`]: for a request longer than a segment, a dedicated region of up to twice its
    /// length; for any other, a place among blocks of the other class.
    pub(crate) fn request_loosely(&mut self, bytes: usize) -> Option<Block> {
        self.request_up_to(bytes, Policy::largest_dedicated_loosely)
    }

    /// The same; `longest` gives the longest dedicated region that may serve.
    fn request_up_to(&mut self, bytes: usize, longest: fn(&Policy, Granules) -> Granules) -> Option<Block> {
        let granules = self.policy.serves(bytes)?;
        let block = if self.policy.is_dedicated(granules) {
            let most = longest(&self.policy, granules);
            self.arena.take_dedicated(granules, most)?
        } else {
            let class = self.class(bytes);
            self.arena.take_anywhere(granules, class)?
        };
        self.count(block, Cached::default());
        Some(block)
    }

    /// A block wherever there is one, for a request that [`Self::request`] answered with
    /// [`Decision::Pin`] where nothing more can be pinned: from a segment of its class, an idle
    /// segment, or the other class; for a request longer than a segment, the smallest idle dedicated
    /// region that holds it, of any length. `None` if there is none, and for requests that pass
    /// through. Counts a hit; the miss was counted before.
    pub fn request_anywhere(&mut self, bytes: usize) -> Option<Block> {
        self.request_up_to(bytes, |_, _| Granules::new(u32::MAX))
    }

    /// The shortest region for a request of `bytes` bytes: rounded up to granules; `None` above
    /// [`crate::MAX_REGION`].
    pub fn exact_region(bytes: usize) -> Option<usize> {
        exact_region(bytes)
    }

    /// Makes a pinned region a segment or, if it is longer than one, a dedicated region. Only moves
    /// the bookkeeping. O(S) in the number of segments.
    ///
    /// # Errors
    ///
    /// [`AdoptError`] if the region overlaps a segment, or if there are too many segments. The region
    /// is then still the caller's; its bookkeeping is dropped.
    pub fn adopt(&mut self, mut segment: NewSegment) -> Result<SegmentId, AdoptError> {
        let (region, home) = (segment.0.region(), segment.0.home);
        let dedicated = self.policy.is_dedicated(segment.0.granules());
        if self.mixing {
            segment.0.fit_best();
        }
        let id = self.arena.adopt(segment, dedicated)?;
        self.stats.region_adopted(region.bytes as u64, dedicated);
        self.knows(home);
        self.demands.of_mut(home).pinned += region.bytes as u64;
        Ok(id)
    }

    /// The address of a block's first byte.
    ///
    /// # Panics
    ///
    /// If the block's segment was unpinned or never adopted.
    #[inline]
    pub fn address(&self, block: Block) -> usize {
        match self.arena.get(block.segment) {
            Some(segment) => segment.region().base + block.offset,
            None => panic!("{}", Misuse::UnknownSegment { segment: block.segment }),
        }
    }

    /// Live to pending: the user freed the block, and events recorded on it are outstanding. Its
    /// memory stays taken until [`Self::release`] (I4).
    ///
    /// # Errors
    ///
    /// [`Misuse`] where `block` is not a live block; nothing was changed.
    #[inline]
    pub fn defer(&mut self, block: Block) -> Result<(), Misuse> {
        self.arena.defer(block)?;
        self.stats.block_deferred(block.bytes as u64);
        Ok(())
    }

    /// Live or pending to free: its memory can be handed out again, merged with free neighbours.
    ///
    /// # Errors
    ///
    /// [`Misuse`] where `block` is neither live nor pending; nothing was changed.
    #[inline]
    pub fn release(&mut self, block: Block) -> Result<(), Misuse> {
        let (was, home) = self.arena.release(block)?;
        self.stats.block_released(block.bytes as u64, was);
        self.demands.of_mut(home).released(block.bytes as u64);
        Ok(())
    }

    /// The statistics now. O(S) in the number of segments.
    pub fn stats(&self) -> Stats {
        let longest = self.arena.iter().map(|(_, resident)| resident.longest()).max();
        Stats {
            idle_bytes: self.stats.pinned_bytes.current - self.stats.active_bytes.current,
            largest_free_run_bytes: Granules::new(longest.unwrap_or(0)).bytes() as u64,
            ..self.stats
        }
    }

    /// Bytes of all regions.
    pub(crate) fn pinned_bytes(&self) -> usize {
        self.stats.pinned_bytes.current as usize
    }

    /// Bytes in blocks, live or pending.
    pub(crate) fn in_use(&self) -> usize {
        self.used_bytes() as usize
    }

    /// Every gauge's peak becomes its current value.
    pub fn reset_peaks(&mut self) {
        self.stats.reset_peaks();
    }

    /// Resets what gauges and counters have accumulated; current values and peaks stay.
    pub fn reset_accumulated(&mut self) {
        self.stats.reset_accumulated();
    }

    /// The segments and dedicated regions, in no particular order.
    pub fn segments(&self) -> impl Iterator<Item = SegmentView> {
        self.arena.iter().map(|(id, resident)| resident.view(id))
    }

    /// The blocks of a segment in order of offset; `None` where `id` names none. O(log n) a block,
    /// n the segment's size, however much of it is free.
    pub fn blocks(&self, id: SegmentId) -> Option<impl Iterator<Item = BlockView>> {
        Some(self.arena.get(id)?.blocks())
    }

    /// Rechecks I1, I2, I3 and I8: counts everything again from the records of blocks. For tests and
    /// debugging: O(granules * log granules).
    ///
    /// # Errors
    ///
    /// The first [`Violation`] found, which is a defect of the engine.
    pub fn audit(&self) -> Result<(), Violation> {
        audit::audit(self)
    }

    /// [`NewSegment::new`] and [`Self::adopt`], for tests.
    #[cfg(test)]
    pub(crate) fn adopt_region(&mut self, base: usize, bytes: usize) -> SegmentId {
        let region = crate::units::Region { base, bytes };
        self.adopt(NewSegment::new(region).unwrap()).unwrap()
    }
}

mod homes;
mod idle;
mod renew;

#[cfg(test)]
pub(crate) mod tests;
