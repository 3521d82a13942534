//! The engine's front door: policy and statistics on top of the arena.
//!
//! Decides which requests are the engine's and how much to pin when nothing fits; knows nothing
//! of trees or orders. Every method is a plain state change: no waiting, no I/O.

use crate::arena::Arena;
use crate::audit;
use crate::error::{AdoptError, Misuse, Violation};
use crate::segment::SegmentView;
use crate::stats::Stats;
use crate::units::{Block, GRANULE, Granules, MAX_REGION, Region, SegmentId, round_up};

/// A region pinned for one large request is a multiple of this: the size of a huge page on x86-64
/// and aarch64, so that it can be backed by them with nothing to spare.
const HUGE_PAGE: usize = 2 << 20;

/// What the engine is told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Size of a segment, in bytes. Rounded up to granules and cut to [`MAX_REGION`].
    pub segment_bytes: usize,
    /// The smallest request that the engine serves, in bytes; with 0, all but empty ones.
    pub threshold_bytes: usize,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Hand this out.
    Block(Block),
    /// Nothing fits: pin a region of so many bytes outside every lock, [`Engine::adopt`] it and
    /// ask again.
    Pin {
        /// Length of the region, in bytes; a multiple of [`GRANULE`].
        bytes: usize,
    },
    /// Not the engine's: serve it as if there were no engine.
    PassThrough,
}

/// Decides which pinned memory serves which request. See the crate's documentation.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    pub(crate) arena: Arena,
    /// All but `idle_bytes` and `largest_free_run_bytes`, which are worked out when asked for.
    pub(crate) stats: Stats,
}

impl Engine {
    /// An engine with nothing pinned.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            arena: Arena::default(),
            stats: Stats::default(),
        }
    }

    /// Decides on a request of `bytes` bytes. Empty ones, those below the threshold and those
    /// above [`MAX_REGION`] pass through. A block comes from the fullest segment that has room
    /// (see ARCHITECTURE.md), at the lowest offset. O(log n) in the size of the segment, and a
    /// scan of the segments that are partly used but too fragmented.
    #[inline]
    pub fn request(&mut self, bytes: usize) -> Decision {
        if bytes == 0 || bytes < self.config.threshold_bytes {
            self.stats.pass_through += 1;
            return Decision::PassThrough;
        }
        let Some(granules) = Granules::holding(bytes) else {
            self.stats.pass_through += 1;
            return Decision::PassThrough;
        };
        if let Some(block) = self.arena.take(granules) {
            self.stats.block_taken(block.bytes as u64);
            return Decision::Block(block);
        }
        self.stats.misses += 1;
        Decision::Pin {
            bytes: self.region_for(granules.bytes()),
        }
    }

    /// How much to pin for a request of `bytes`, which is at most [`MAX_REGION`]: a segment, or a
    /// region of the request's own where a segment is too small.
    fn region_for(&self, bytes: usize) -> usize {
        let segment = round_up(self.config.segment_bytes, GRANULE).unwrap_or(MAX_REGION);
        let segment = segment.min(MAX_REGION);
        if bytes <= segment {
            segment
        } else {
            round_up(bytes, HUGE_PAGE).unwrap_or(MAX_REGION)
        }
    }

    /// Makes a pinned region a segment, of any size and alignment. What is shorter than a granule
    /// at its end is not used, but counted as pinned and given back with the rest.
    ///
    /// # Errors
    ///
    /// [`AdoptError`] where the region holds no granule, is larger than [`MAX_REGION`], ends
    /// beyond the address space or overlaps a segment. It is then still the caller's.
    pub fn adopt(&mut self, region: Region) -> Result<SegmentId, AdoptError> {
        let id = self.arena.adopt(region)?;
        self.stats.region_adopted(region.bytes as u64);
        Ok(id)
    }

    /// The address of a block's first byte.
    ///
    /// # Panics
    ///
    /// Where the block's segment was given back or never adopted.
    #[inline]
    pub fn address(&self, block: Block) -> usize {
        match self.arena.get(block.segment) {
            Some(segment) => segment.region().base + block.offset,
            None => panic!(
                "{}",
                Misuse::UnknownSegment {
                    segment: block.segment
                }
            ),
        }
    }

    /// Live to pending: the user freed the block, events recorded on it are outstanding. Its
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
        let was = self.arena.release(block)?;
        self.stats.block_released(block.bytes as u64, was);
        Ok(())
    }

    /// Removes every wholly idle segment and returns their regions exactly as adopted, oldest
    /// first, for the caller to unpin outside every lock.
    pub fn take_idle(&mut self) -> Vec<Region> {
        let regions = self.arena.take_idle();
        for region in &regions {
            self.stats.region_given_back(region.bytes as u64);
        }
        regions
    }

    /// The statistics now. O(S) in the number of segments.
    pub fn stats(&self) -> Stats {
        let used = self.stats.live_bytes.current + self.stats.pending_bytes.current;
        let longest = self
            .arena
            .iter()
            .map(|(_, resident)| resident.segment.longest())
            .max();
        Stats {
            idle_bytes: self.stats.pinned_bytes.current - used,
            largest_free_run_bytes: Granules::new(longest.unwrap_or(0)).bytes() as u64,
            ..self.stats
        }
    }

    /// Every gauge's peak becomes its current value.
    pub fn reset_peaks(&mut self) {
        self.stats.reset_peaks();
    }

    /// What gauges and counters accumulated becomes 0; current values and peaks stay.
    pub fn reset_accumulated(&mut self) {
        self.stats.reset_accumulated();
    }

    /// The segments, in no particular order.
    pub fn segments(&self) -> impl Iterator<Item = SegmentView> {
        self.arena
            .iter()
            .map(|(id, resident)| resident.segment.view(id))
    }

    /// Rechecks I1, I2, I3 and I8 from first principles: everything is counted again from the
    /// records of blocks. For tests and debugging: O(granules * log granules).
    ///
    /// # Errors
    ///
    /// The first [`Violation`] found: a defect of the engine.
    pub fn audit(&self) -> Result<(), Violation> {
        audit::audit(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn engine(segment_bytes: usize, threshold_bytes: usize) -> Engine {
        Engine::new(Config {
            segment_bytes,
            threshold_bytes,
        })
    }

    fn block(decision: Decision) -> Block {
        match decision {
            Decision::Block(block) => block,
            other => panic!("no block: {other:?}"),
        }
    }

    #[test]
    fn the_threshold_is_the_smallest_request_served() {
        let mut engine = engine(1024 * MIB, 4 * MIB);
        assert_eq!(engine.request(0), Decision::PassThrough);
        assert_eq!(engine.request(4 * MIB - 1), Decision::PassThrough);
        assert_eq!(engine.request(4 * MIB), Decision::Pin { bytes: 1024 * MIB });
        let stats = engine.stats();
        assert_eq!((stats.hits, stats.misses, stats.pass_through), (0, 1, 2));
    }

    #[test]
    fn threshold_zero_serves_all_but_empty_requests() {
        let mut engine = engine(1024 * MIB, 0);
        assert_eq!(engine.request(0), Decision::PassThrough);
        assert_eq!(engine.request(1), Decision::Pin { bytes: 1024 * MIB });
    }

    #[test]
    fn what_to_pin_is_a_segment_or_the_request_in_huge_pages() {
        let mut engine = engine(1000 * MIB - 1, 0);
        for (request, pinned) in [
            (1, 1000 * MIB),
            (1000 * MIB, 1000 * MIB),
            (1000 * MIB + 1, 1002 * MIB),
            (2133 * MIB, 2134 * MIB), // not the next power of two
            (MAX_REGION, MAX_REGION),
        ] {
            assert_eq!(
                engine.request(request),
                Decision::Pin { bytes: pinned },
                "{request}"
            );
        }
    }

    #[test]
    fn sizes_at_the_edge_of_usize_neither_overflow_nor_pin() {
        for segment_bytes in [0, 1, usize::MAX] {
            let mut engine = engine(segment_bytes, 0);
            for bytes in [MAX_REGION + 1, usize::MAX - GRANULE, usize::MAX] {
                assert_eq!(engine.request(bytes), Decision::PassThrough, "{bytes}");
            }
            let Decision::Pin { bytes } = engine.request(1) else {
                panic!("one byte passes")
            };
            assert!((1..=MAX_REGION).contains(&bytes), "{bytes}");
        }
        assert_eq!(engine(0, 0).request(1), Decision::Pin { bytes: HUGE_PAGE });
    }

    #[test]
    fn the_life_of_a_request() {
        let mut engine = engine(64 * MIB, 0);
        let Decision::Pin { bytes } = engine.request(5000) else {
            panic!("nothing is pinned")
        };
        engine
            .adopt(Region {
                base: 0x7000,
                bytes,
            })
            .unwrap();
        let first = block(engine.request(5000));
        let second = block(engine.request(1));
        assert_eq!((first.bytes, engine.address(first)), (2 * GRANULE, 0x7000));
        assert_eq!(
            (second.bytes, engine.address(second)),
            (GRANULE, 0x7000 + 2 * GRANULE)
        );
        engine.defer(first).unwrap();
        assert_eq!(block(engine.request(1)).offset, 3 * GRANULE); // pending is not free
        engine.release(first).unwrap();
        assert_eq!(block(engine.request(1)).offset, 0);
        assert_eq!(engine.audit(), Ok(()));
    }

    #[test]
    fn statistics_follow_and_reset() {
        let mut engine = engine(10 * GRANULE, 0);
        engine
            .adopt(Region {
                base: 1,
                bytes: 10 * GRANULE + 7,
            })
            .unwrap();
        let first = block(engine.request(3 * GRANULE));
        let second = block(engine.request(2 * GRANULE));
        engine.defer(second).unwrap();
        let stats = engine.stats();
        let g = GRANULE as u64;
        assert_eq!(
            (stats.pinned_bytes.current, stats.segments.current),
            (10 * g + 7, 1)
        );
        assert_eq!(
            (stats.live_bytes.current, stats.pending_bytes.current),
            (3 * g, 2 * g)
        );
        assert_eq!(
            (stats.idle_bytes, stats.largest_free_run_bytes),
            (5 * g + 7, 5 * g)
        );
        assert_eq!((stats.live_bytes.peak, stats.live_blocks.peak), (5 * g, 2));
        engine.release(first).unwrap();
        engine.release(second).unwrap();
        engine.reset_peaks();
        engine.reset_accumulated();
        assert_eq!(
            engine.take_idle(),
            [Region {
                base: 1,
                bytes: 10 * GRANULE + 7
            }]
        );
        let stats = engine.stats();
        assert_eq!((stats.live_bytes.peak, stats.hits), (0, 0));
        assert_eq!(
            (stats.pinned_bytes.current, stats.pinned_bytes.freed),
            (0, 10 * g + 7)
        );
        assert_eq!((stats.idle_bytes, stats.largest_free_run_bytes), (0, 0));
        assert_eq!(engine.audit(), Ok(()));
    }

    #[test]
    fn misuse_changes_no_statistic() {
        let mut engine = engine(10 * GRANULE, 0);
        engine
            .adopt(Region {
                base: 0x1000,
                bytes: 10 * GRANULE,
            })
            .unwrap();
        let kept = block(engine.request(GRANULE));
        let gone = block(engine.request(GRANULE));
        engine.release(gone).unwrap();
        let before = engine.stats();
        assert!(engine.release(gone).is_err());
        assert!(engine.defer(gone).is_err());
        assert!(
            engine
                .release(Block {
                    bytes: 2 * GRANULE,
                    ..kept
                })
                .is_err()
        );
        assert!(
            engine
                .adopt(Region {
                    base: 0x1000,
                    bytes: GRANULE
                })
                .is_err()
        );
        assert_eq!(engine.stats(), before);
        assert_eq!(engine.audit(), Ok(()));
    }

    #[test]
    #[should_panic(expected = "no segment 3.0")]
    fn the_address_of_an_unknown_segment_is_an_assertion() {
        let segment = SegmentId::from_u32(3);
        engine(GRANULE, 0).address(Block {
            segment,
            offset: 0,
            bytes: GRANULE,
        });
    }
}
