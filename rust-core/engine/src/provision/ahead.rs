//! How much more than a request is pinned when nothing fits it.
//!
//! As read-ahead does it: nothing for a request that stands alone, and a *window* that doubles with
//! each further one that finds no room. A clear closes the window again: what was given back is
//! pinned anew when demand shows, and not on a schedule. Apart from that, a buffer that grows leaves
//! room for its growth. Pure numbers; knows no region, no time and no budget.

use crate::kind::SMALL;

/// The first window that is open.
const FIRST: usize = 64 << 20;
/// How far the window opens, but for what is in use; beyond that, to a quarter of the largest set.
const MODEST: usize = 256 << 20;
/// So many of the last requests that found no room are known.
const KNOWN: usize = 64;
/// Of these, so many are recent.
const RECENT: usize = 8;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Ahead {
    window: usize,
    /// The last requests that found no room, in a ring.
    last: [usize; KNOWN],
    misses: usize,
    /// The largest request that found no room, and how often in a row one was the largest so far and
    /// came after regions that were a little too small.
    record: usize,
    records: u32,
    /// Bytes of requests that found no room since the last clear.
    demand: usize,
    /// How often regions of each power of two were too short.
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
    /// A request of `bytes` found no room, where `in_use` is what is in use with it, and `largest_set`
    /// the most that was.
    pub(super) fn miss(&mut self, bytes: usize, in_use: usize, largest_set: usize) {
        self.demand = self.demand.saturating_add(bytes);
        self.last[self.misses % KNOWN] = bytes;
        self.misses += 1;
        // The first of all, and the first after a clear, may be the only one.
        if self.misses > 1 {
            self.open(in_use, largest_set);
        }
    }

    /// What lay ready was used up: as after a request that found no room, the window opens further.
    pub(super) fn open(&mut self, in_use: usize, largest_set: usize) {
        let most = MODEST.max(largest_set / 4).min(in_use);
        self.window = (self.window * 2).max(FIRST).min(most);
    }

    /// What was in use was given back, and may or may not be wanted again.
    pub(super) fn clear(&mut self) {
        *self = Self {
            record: self.record,
            ..Self::default()
        };
    }

    /// How much may lie ready beyond what requests have asked for.
    pub(super) fn window(&self) -> usize {
        self.window
    }

    pub(super) fn demand(&self) -> usize {
        self.demand
    }

    /// The last request that found no room.
    pub(super) fn last(&self) -> Option<usize> {
        self.of_the_last(1).next()
    }

    /// The smallest of the recent ones: what is shorter than that would serve none of them.
    pub(super) fn smallest_recent(&self) -> Option<usize> {
        self.of_the_last(RECENT).min()
    }

    /// The smallest of all that are known: one of that size may come at any moment.
    pub(super) fn smallest_known(&self) -> Option<usize> {
        self.of_the_last(KNOWN).min()
    }

    fn of_the_last(&self, count: usize) -> impl Iterator<Item = usize> {
        let from = self.misses.saturating_sub(count);
        (from..self.misses).map(|at| self.last[at % KNOWN])
    }

    /// How much more than a request of `bytes` is pinned where that takes the place of a region that is
    /// too short: an eighth, and twice as much each time that it happens again.
    pub(super) fn room_to_grow(&mut self, bytes: usize) -> usize {
        let times = &mut self.outgrown[bytes.max(1).ilog2() as usize];
        let more = for_growth(bytes, (*times).into());
        *times = times.saturating_add(1);
        more
    }

    /// The region of its own for a request of `bytes`, where `pinned` bytes are pinned; `outgrown`
    /// says whether an idle region of at least half its size is too small for it.
    pub(super) fn region_of_its_own(
        &mut self,
        bytes: usize,
        pinned: usize,
        outgrown: impl FnOnce() -> bool,
    ) -> usize {
        let mut region = bytes;
        if bytes > self.record {
            // A buffer that grows finds its last region too small, again and again: room for an
            // eighth, then for more, so that it is pinned a few times and not at each step.
            if self.record > 0 && outgrown() {
                region += for_growth(bytes, self.records);
                self.records += 1;
            }
            self.record = bytes;
        }
        if bytes < SMALL {
            region = region.max((pinned / 16).min(FIRST));
        }
        // However many sizes there are, regions stay few: the kernel allows a process so many.
        region.max(pinned / 512)
    }
}

/// What is pinned beyond `bytes` for a buffer that has outgrown so many regions: an eighth, and twice as
/// much each time, up to as much again.
fn for_growth(bytes: usize, times: u32) -> usize {
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
            ahead.miss(8 * MIB, 400 * MIB, 400 * MIB);
            windows.push(ahead.window() / MIB);
        }
        assert_eq!(windows, [0, 64, 128, 256, 256]);
        ahead.miss(8 * MIB, 4096 * MIB, 4096 * MIB);
        assert_eq!(ahead.window(), 512 * MIB, "a quarter of what is in use");
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
