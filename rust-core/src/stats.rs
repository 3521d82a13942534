//! Statistics: what is pinned, active and idle, and how requests were answered.
//!
//! Counts what the engine reports; knows no segment. Every byte pinned is counted once (I8):
//! active + idle = pinned; active is what users have, and what is pending.

use crate::records::State;
use crate::rival::Rival;

/// A quantity over time, with the meaning of PyTorch's `c10::CachingAllocator::Stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauge {
    /// What it is now.
    pub current: u64,
    /// The most that it was since the last reset of peaks.
    pub peak: u64,
    /// All that was added since the last reset of what is accumulated.
    pub allocated: u64,
    /// All that was taken away since then.
    pub freed: u64,
}

impl Gauge {
    #[inline]
    fn add(&mut self, amount: u64) {
        self.current += amount;
        self.peak = self.peak.max(self.current);
        self.allocated += amount;
    }

    #[inline]
    fn remove(&mut self, amount: u64) {
        self.current -= amount;
        self.freed = self.freed.wrapping_add(amount);
    }

    /// As [`Self::add`], but it is `used` that may be the most now.
    #[inline]
    fn add_beside(&mut self, amount: u64, used: u64) {
        self.current += amount;
        self.peak = self.peak.max(used);
        self.allocated += amount;
    }

    /// So much was removed and added again, unseen, and `used` was the most that was there.
    #[inline]
    fn settle(&mut self, reused: u64, used: u64) {
        self.allocated = self.allocated.wrapping_add(reused);
        self.freed = self.freed.wrapping_add(reused);
        self.peak = self.peak.max(used);
    }

    fn reset_peak(&mut self) {
        self.peak = self.current;
    }

    fn reset_accumulated(&mut self) {
        (self.allocated, self.freed) = (0, 0);
    }
}

/// The engine's statistics. Block sizes count as rounded up to granules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes of all segments and dedicated regions, with what is shorter than a granule at their ends.
    pub pinned_bytes: Gauge,
    /// Segments, dedicated regions included.
    pub segments: Gauge,
    /// Bytes in blocks that are live or pending: PyTorch's active bytes.
    pub active_bytes: Gauge,
    /// Such blocks.
    pub active_blocks: Gauge,
    /// Bytes in pending blocks: freed by the user, events outstanding.
    pub pending_bytes: Gauge,
    /// Pending blocks.
    pub pending_blocks: Gauge,
    /// Requests answered with a block, since the last reset of what is accumulated.
    pub hits: u64,
    /// Requests answered with [`crate::Decision::Pin`], since then.
    pub misses: u64,
    /// Requests answered with [`crate::Decision::PassThrough`], since then.
    pub pass_through: u64,
    /// Bytes pinned and in no block; a region's end that is shorter than a granule is idle.
    pub idle_bytes: u64,
    /// The longest free run that a block can be cut from, in bytes. What a dedicated region has
    /// beside its block is idle and none.
    pub largest_free_run_bytes: u64,
    /// Bytes of the dedicated regions: what of the pinned bytes serves requests longer than a
    /// segment.
    pub dedicated_bytes: u64,
    pub(crate) used: Used,
    /// The most bytes that were in blocks at once: no reset of peaks reaches it.
    pub(crate) largest_set: u64,
    pub(crate) rival: Rival,
}

/// Blocks that the caller keeps whole when they are freed, for the next request of their size,
/// instead of releasing them: live to the engine, and idle in truth. What the statistics need to
/// count as if it were not so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Blocks that are kept now.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// By how much the number of blocks that users have has risen at most, at any time since this
    /// was last told: by requests that kept blocks served, less what was freed.
    pub rise_blocks: u64,
    /// The same for their bytes.
    pub rise_bytes: u64,
    /// Requests that kept blocks have served since then.
    pub reused_blocks: u64,
    /// The bytes of these blocks.
    pub reused_bytes: u64,
}

/// What was active and not kept when a [`Kept`] was last told, and what the engine has granted since;
/// and the most that counted as active since then, which it cannot have gone beyond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    blocks: u64,
    bytes: u64,
    most_blocks: u64,
    most_bytes: u64,
}

impl Stats {
    #[inline]
    pub(crate) fn block_taken(&mut self, bytes: u64) {
        self.hits += 1;
        self.active_bytes.add(bytes);
        self.active_blocks.add(1);
        self.rival.taken(bytes);
        self.grant(bytes);
    }

    /// As [`Self::block_taken`], while some of what counts as live is kept.
    #[inline]
    pub(crate) fn block_taken_beside(&mut self, bytes: u64) {
        self.hits += 1;
        self.active_bytes.add_beside(bytes, self.used.bytes + bytes);
        self.active_blocks.add_beside(1, self.used.blocks + 1);
        self.rival.taken(bytes);
        self.grant(bytes);
    }

    /// What happened to blocks that were kept: the requests that they served are counted now, and
    /// peaks that were reached meanwhile.
    #[inline]
    pub(crate) fn settle(&mut self, kept: &Kept) {
        self.hits += kept.reused_blocks;
        // Several threads have risen at different times, and together at most to what was granted.
        let most_bytes = (self.used.bytes + kept.rise_bytes).min(self.used.most_bytes);
        let most_blocks = (self.used.blocks + kept.rise_blocks).min(self.used.most_blocks);
        self.active_bytes.settle(kept.reused_bytes, most_bytes);
        self.active_blocks.settle(kept.reused_blocks, most_blocks);
        // Threads keep blocks while others count them: less than none is none.
        self.used = Used {
            blocks: self.active_blocks.current.saturating_sub(kept.blocks),
            bytes: self.active_bytes.current.saturating_sub(kept.bytes),
            most_blocks: self.active_blocks.current,
            most_bytes: self.active_bytes.current,
        };
    }

    #[inline]
    fn grant(&mut self, bytes: u64) {
        self.used.blocks += 1;
        self.used.bytes += bytes;
        self.rise();
    }

    #[inline]
    fn rise(&mut self) {
        self.used.most_blocks = self.used.most_blocks.max(self.active_blocks.current);
        self.used.most_bytes = self.used.most_bytes.max(self.active_bytes.current);
        self.largest_set = self.largest_set.max(self.active_bytes.current);
    }

    pub(crate) fn forget_largest_set(&mut self) {
        self.largest_set = self.active_bytes.current;
        self.rival.clear();
    }

    /// Pending to kept: it was active, and is until it is released.
    #[inline]
    pub(crate) fn block_kept(&mut self, bytes: u64) {
        self.pending_bytes.remove(bytes);
        self.pending_blocks.remove(1);
    }

    #[inline]
    pub(crate) fn block_deferred(&mut self, bytes: u64) {
        self.pending_bytes.add(bytes);
        self.pending_blocks.add(1);
    }

    #[inline]
    pub(crate) fn block_released(&mut self, bytes: u64, was: State) {
        if was == State::Pending {
            self.pending_bytes.remove(bytes);
            self.pending_blocks.remove(1);
        }
        self.active_bytes.remove(bytes);
        self.active_blocks.remove(1);
        self.rival.released(bytes);
    }

    pub(crate) fn region_adopted(&mut self, bytes: u64, dedicated: bool) {
        self.pinned_bytes.add(bytes);
        self.segments.add(1);
        if dedicated {
            self.dedicated_bytes += bytes;
        }
    }

    pub(crate) fn region_given_back(&mut self, bytes: u64, dedicated: bool) {
        self.pinned_bytes.remove(bytes);
        self.segments.remove(1);
        if dedicated {
            self.dedicated_bytes -= bytes;
        }
    }

    pub(crate) fn reset_peaks(&mut self) {
        self.gauges().into_iter().for_each(Gauge::reset_peak);
    }

    pub(crate) fn reset_accumulated(&mut self) {
        self.gauges().into_iter().for_each(Gauge::reset_accumulated);
        (self.hits, self.misses, self.pass_through) = (0, 0, 0);
    }

    fn gauges(&mut self) -> [&mut Gauge; 6] {
        [
            &mut self.pinned_bytes,
            &mut self.segments,
            &mut self.active_bytes,
            &mut self.active_blocks,
            &mut self.pending_bytes,
            &mut self.pending_blocks,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_keeps_peak_and_flow() {
        let mut gauge = Gauge::default();
        gauge.add(10);
        gauge.add(5);
        gauge.remove(12);
        assert_eq!(
            gauge,
            Gauge {
                current: 3,
                peak: 15,
                allocated: 15,
                freed: 12
            }
        );
        gauge.reset_peak();
        assert_eq!(
            gauge,
            Gauge {
                current: 3,
                peak: 3,
                allocated: 15,
                freed: 12
            }
        );
        gauge.reset_accumulated();
        assert_eq!(
            gauge,
            Gauge {
                current: 3,
                peak: 3,
                allocated: 0,
                freed: 0
            }
        );
    }

    #[test]
    fn what_is_pending_is_active_too() {
        let mut stats = Stats::default();
        stats.block_taken(100);
        stats.block_taken(50);
        stats.block_deferred(100);
        assert_eq!(
            (stats.active_bytes.current, stats.active_blocks.current),
            (150, 2)
        );
        assert_eq!(
            (stats.pending_bytes.current, stats.pending_blocks.current),
            (100, 1)
        );
        stats.block_released(100, State::Pending);
        stats.block_released(50, State::Live);
        assert_eq!(
            (stats.active_bytes.current, stats.active_blocks.current),
            (0, 0)
        );
        assert_eq!(
            (stats.pending_bytes.current, stats.pending_blocks.current),
            (0, 0)
        );
        assert_eq!(
            (
                stats.active_bytes.peak,
                stats.pending_bytes.freed,
                stats.hits
            ),
            (150, 100, 2)
        );
    }

    #[test]
    fn what_threads_rose_by_together_is_no_more_than_was_granted() {
        let mut stats = Stats::default();
        stats.block_taken(100);
        stats.block_taken(50);
        let kept = Kept {
            rise_blocks: 5,
            rise_bytes: 500,
            ..Kept::default()
        };
        stats.settle(&kept);
        assert_eq!(
            (stats.active_blocks.peak, stats.active_bytes.peak),
            (2, 150)
        );
    }

    #[test]
    fn resets_reach_every_gauge() {
        let gauge = Gauge {
            current: 1,
            peak: 2,
            allocated: 3,
            freed: 4,
        };
        let mut stats = Stats {
            pinned_bytes: gauge,
            segments: gauge,
            active_bytes: gauge,
            active_blocks: gauge,
            pending_bytes: gauge,
            pending_blocks: gauge,
            ..Stats::default()
        };
        (stats.hits, stats.misses, stats.pass_through) = (1, 1, 1);
        stats.reset_peaks();
        stats.reset_accumulated();
        let reset = Gauge {
            current: 1,
            peak: 1,
            allocated: 0,
            freed: 0,
        };
        assert!(
            stats.gauges().into_iter().all(|gauge| *gauge == reset),
            "{stats:?}"
        );
        assert_eq!((stats.hits, stats.misses, stats.pass_through), (0, 0, 0));
    }
}
