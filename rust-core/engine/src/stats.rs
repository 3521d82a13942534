//! Statistics: what is pinned, active and idle, and how requests were answered.
//!
//! Counts what the engine reports; knows no segment. Every pinned byte is counted once (I8):
//! active + idle = pinned, where active is live and pending.

use crate::gauge::Gauge;
use crate::records::State;

/// The engine's statistics. Block sizes count as rounded up to granules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes of all segments and dedicated regions, including parts of granules at their ends.
    pub pinned_bytes: Gauge,
    /// Segments, dedicated regions included.
    pub segments: Gauge,
    /// Bytes in blocks that are live or pending: PyTorch's active bytes.
    pub active_bytes: Gauge,
    /// Blocks that are live or pending.
    pub active_blocks: Gauge,
    /// Bytes in pending blocks: freed by the user, events outstanding.
    pub pending_bytes: Gauge,
    /// Pending blocks.
    pub pending_blocks: Gauge,
    /// Requests answered with a block, since accumulated values were last reset.
    pub hits: u64,
    /// Requests answered with [`crate::Decision::Pin`], since then.
    pub misses: u64,
    /// Requests answered with [`crate::Decision::PassThrough`], since then.
    pub pass_through: u64,
    /// Bytes pinned and in no block, including parts of granules at the ends of regions.
    pub idle_bytes: u64,
    /// The longest free run that a block can be cut from, in bytes. The rest of a dedicated region
    /// beside its block is idle, and no such run.
    pub largest_free_run_bytes: u64,
    /// Bytes that went back by themselves, since nobody used them.
    pub returned_bytes: u64,
    /// Bytes of the dedicated regions, which serve requests longer than a segment.
    pub dedicated_bytes: u64,
}

impl Stats {
    /// A request was served with a block of so many bytes, which is not the engine's.
    #[inline]
    pub fn block_lent(&mut self, bytes: u64) {
        self.hits += 1;
        self.active_bytes.add(bytes);
        self.active_blocks.add(1);
    }

    /// Requests that cached blocks have served.
    pub(crate) fn reused(&mut self, blocks: u64, bytes: u64) {
        self.hits += blocks;
        self.active_blocks.reused(blocks);
        self.active_bytes.reused(bytes);
    }

    /// Pending to cached: the block stays active until it is released.
    #[inline]
    pub fn block_cached(&mut self, bytes: u64) {
        self.pending_bytes.remove(bytes);
        self.pending_blocks.remove(1);
    }

    /// Live to pending.
    #[inline]
    pub fn block_deferred(&mut self, bytes: u64) {
        self.pending_bytes.add(bytes);
        self.pending_blocks.add(1);
    }

    #[inline]
    pub(crate) fn block_released(&mut self, bytes: u64, was: State) {
        if was == State::Pending {
            self.block_cached(bytes);
        }
        self.block_returned(bytes);
    }

    /// Live to free, for such a block.
    #[inline]
    pub fn block_returned(&mut self, bytes: u64) {
        self.active_bytes.remove(bytes);
        self.active_blocks.remove(1);
    }

    /// One more region; `dedicated` says whether it serves one block at a time.
    pub fn region_adopted(&mut self, bytes: u64, dedicated: bool) {
        self.pinned_bytes.add(bytes);
        self.segments.add(1);
        if dedicated {
            self.dedicated_bytes += bytes;
        }
    }

    /// One region less.
    pub fn region_unpinned(&mut self, bytes: u64, dedicated: bool) {
        self.pinned_bytes.remove(bytes);
        self.segments.remove(1);
        if dedicated {
            self.dedicated_bytes -= bytes;
        }
    }

    /// Every gauge's peak becomes its current value.
    pub fn reset_peaks(&mut self) {
        self.gauges().into_iter().for_each(Gauge::reset_peak);
    }

    /// Sums and counts start again; current values and peaks stay.
    pub fn reset_accumulated(&mut self) {
        self.gauges().into_iter().for_each(Gauge::reset_accumulated);
        (self.hits, self.misses, self.pass_through) = (0, 0, 0);
    }

    /// The statistics of both together, which have no byte in common. Peaks are added, too: an upper bound.
    #[must_use]
    pub fn and(mut self, mut other: Self) -> Self {
        for (to, from) in self.gauges().into_iter().zip(other.gauges()) {
            to.current += from.current;
            to.peak += from.peak;
            to.allocated = to.allocated.wrapping_add(from.allocated);
            to.freed = to.freed.wrapping_add(from.freed);
        }
        self.hits += other.hits;
        self.misses += other.misses;
        self.pass_through += other.pass_through;
        self.idle_bytes += other.idle_bytes;
        self.returned_bytes += other.returned_bytes;
        self.dedicated_bytes += other.dedicated_bytes;
        self.largest_free_run_bytes = self.largest_free_run_bytes.max(other.largest_free_run_bytes);
        self
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
    fn resets_reach_every_gauge() {
        let gauge = Gauge { current: 1, peak: 2, allocated: 3, freed: 4 };
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
        let reset = Gauge { current: 1, peak: 1, allocated: 0, freed: 0 };
        assert!(stats.gauges().into_iter().all(|gauge| *gauge == reset), "{stats:?}");
        assert_eq!((stats.hits, stats.misses, stats.pass_through), (0, 0, 0));
    }
}
