//! How much more than the request is pinned after a miss.
//!
//! As in read-ahead: nothing more for a single request, and a *window* that doubles with each further
//! miss. A clear closes the window: what it unpinned is pinned again as demand shows. Apart from that,
//! the region of a buffer that grows has slack. Pure numbers; knows no region, no time and no budget.

use crate::kind::SMALL;

/// The first window, and the widest one unless a quarter of the largest set is more; never more than what is in use.
pub(super) const FIRST: usize = 64 << 20;
/// So many of the last requests that missed are remembered.
const KNOWN: usize = 64;
/// So many of these are recent.
const RECENT: usize = 8;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Ahead {
    window: usize,
    /// The last requests that missed, in a ring.
    last: [usize; KNOWN],
    misses: usize,
    /// The largest request that missed, and how many such records found an idle region a little too
    /// short for them.
    record: usize,
    records: u32,
    /// Bytes of requests that missed since the last clear.
    demand: usize,
    /// By power of two: how often a region was too short.
    outgrown: [u8; usize::BITS as usize],
}

impl Default for Ahead {
    fn default() -> Self {
        Self {
            window: 0,
            last: [0; KNOWN],
            misses: 0,
            record: 0,
            records: 0,
            demand: 0,
            outgrown: [0; usize::BITS as usize],
        }
    }
}

impl Ahead {
    /// A request of `bytes` missed; `in_use` bytes are in use with it, and `largest_set` is the most
    /// that ever was.
    pub(super) fn miss(&mut self, bytes: usize, in_use: usize, largest_set: usize) {
        self.demand = self.demand.saturating_add(bytes);
        self.last[self.misses % KNOWN] = bytes;
        self.misses += 1;
        // The first one, also after a clear, may be the only one.
        if self.misses > 1 {
            self.open(in_use, largest_set);
        }
    }

    /// A miss, or memory ahead of demand was used up: the window doubles.
    pub(super) fn open(&mut self, in_use: usize, largest_set: usize) {
        let most = FIRST.max(largest_set / 4).min(in_use);
        self.window = (self.window * 2).max(FIRST).min(most);
    }

    /// The cache was cleared: demand starts again.
    pub(super) fn clear(&mut self) {
        *self = Self { record: self.record, ..Self::default() };
    }

    /// Bytes that may be pinned beyond what requests have asked for.
    pub(super) fn window(&self) -> usize {
        self.window
    }

    /// Bytes of requests that missed since the last clear.
    pub(super) fn demand(&self) -> usize {
        self.demand
    }

    /// The last request that missed.
    pub(super) fn last(&self) -> Option<usize> {
        self.of_the_last(1).next()
    }

    /// The smallest recent one: a shorter region would serve none of them.
    pub(super) fn smallest_recent(&self) -> Option<usize> {
        self.of_the_last(RECENT).min()
    }

    /// The smallest one remembered: such a request may come at any moment.
    pub(super) fn smallest_known(&self) -> Option<usize> {
        self.of_the_last(KNOWN).min()
    }

    fn of_the_last(&self, count: usize) -> impl Iterator<Item = usize> {
        let from = self.misses.saturating_sub(count);
        (from..self.misses).map(|at| self.last[at % KNOWN])
    }

    /// How much slack to pin with `bytes` that replace a region that was too short: an eighth, doubled
    /// each time that it happens again to this power of two.
    pub(super) fn slack(&mut self, bytes: usize) -> usize {
        let times = &mut self.outgrown[bytes.max(1).ilog2() as usize];
        let more = slack(bytes, (*times).into());
        *times = times.saturating_add(1);
        more
    }

    /// The region for a request of `bytes` alone, while `pinned` bytes are pinned; `outgrown` says
    /// whether an idle region of at least half its size is too short for it.
    pub(super) fn region_of_its_own(&mut self, bytes: usize, pinned: usize, outgrown: impl FnOnce() -> bool) -> usize {
        let mut region = bytes;
        if bytes > self.record {
            // A buffer that grows finds its last region too short again and again. With slack it is
            // pinned a few times, and not at each step.
            if self.record > 0 && outgrown() {
                region += slack(bytes, self.records);
                self.records += 1;
            }
            self.record = bytes;
        }
        if bytes < SMALL {
            region = region.max((pinned / 16).min(FIRST));
        }
        // Keeps regions few, however many sizes there are: the kernel limits a process's mappings.
        region.max(pinned / 512)
    }
}

/// The slack of a buffer of `bytes` that has outgrown `times` regions: an eighth, doubled each time, up
/// to as much again.
fn slack(bytes: usize, times: u32) -> usize {
    (bytes / 8) << times.min(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn the_window_opens_with_demand_and_is_closed_by_a_clear() {
        let mut ahead = Ahead::default();
        let mut windows = Vec::new();
        for _ in 0..5 {
            ahead.miss(8 * MIB, 1200 * MIB, 1200 * MIB);
            windows.push(ahead.window() / MIB);
        }
        assert_eq!(windows, [0, 64, 128, 256, 300], "a quarter of the set");
        ahead.miss(8 * MIB, 200 * MIB, 200 * MIB);
        assert_eq!(ahead.window(), 64 * MIB, "a small set");
        assert_eq!(ahead.demand(), 48 * MIB);
        ahead.clear();
        assert_eq!((ahead.window(), ahead.demand()), (0, 0));
        ahead.miss(8 * MIB, 40 * MIB, 400 * MIB);
        assert_eq!(ahead.window(), 0, "one request after a clear is no demand");
        ahead.miss(8 * MIB, 20 * MIB, 400 * MIB);
        assert_eq!(ahead.window(), 20 * MIB, "no more than is in use");
    }

    #[test]
    fn the_smallest_of_the_last_requests_is_known() {
        let mut ahead = Ahead::default();
        assert_eq!((ahead.last(), ahead.smallest_known()), (None, None));
        ahead.miss(4 * MIB, 0, 0);
        for _ in 1..RECENT {
            ahead.miss(100 * MIB, 0, 0);
        }
        assert_eq!(ahead.last(), Some(100 * MIB));
        assert_eq!(ahead.smallest_recent(), Some(4 * MIB));
        ahead.miss(50 * MIB, 0, 0);
        assert_eq!(ahead.smallest_recent(), Some(50 * MIB));
        for _ in 0..KNOWN {
            assert_eq!(ahead.smallest_known(), Some(4 * MIB));
            ahead.miss(60 * MIB, 0, 0);
            if ahead.misses > KNOWN {
                break;
            }
        }
        assert_eq!(ahead.smallest_known(), Some(50 * MIB));
    }

    #[test]
    fn a_buffer_that_grows_is_pinned_a_few_times() {
        let mut ahead = Ahead::default();
        let (mut regions, mut region) = (Vec::new(), 0);
        for mib in 8..=64 {
            if mib * MIB > region {
                region = ahead.region_of_its_own(mib * MIB, region, || region > 0);
                regions.push(region / MIB);
            }
        }
        assert_eq!(regions, [8, 10, 13, 21, 44, 90]);
    }

    #[test]
    fn regions_stay_few() {
        let mut ahead = Ahead::default();
        let mut pinned = 0;
        let mut count = 0;
        while pinned < 1 << 40 {
            pinned += ahead.region_of_its_own(4096, pinned, || false);
            count += 1;
        }
        assert!(count < 16_000, "{count}");
    }
}
