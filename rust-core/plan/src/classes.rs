//! Size classes: what small requests of a plan of amounts are rounded up to.
//!
//! A request whose size never comes again finds no freed block of its size, and is cut and merged. With a few sizes in
//! each doubling freed blocks serve the next request of their class, as stock's lists of powers of two do. More classes
//! waste less of a block, but each has idle blocks of its own: [`Classes::fitting`] finds what takes least.
//!
//! The C++ side rounds in the same way (`cpp/sizes.h`).

use pinbuddy_core::SMALL;

use crate::file::GRANULE;
use crate::record::{NEVER, Record};

/// Longer requests are not rounded: their parts of a class are worth more than a merge.
const MOST: u32 = (SMALL as u64 / GRANULE) as u32;

/// How many classes a doubling may have. With the last of them nothing is rounded.
const TRIED: [u32; 7] = [1, 2, 4, 8, 16, 32, MOST];

/// So many in each doubling, a power of two; or none, and nothing is rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes(pub(crate) u32);

impl Classes {
    /// The classes with which blocks that stay whole take least; and the bytes that they take: of each class as many as
    /// ever lived at once.
    pub(crate) fn fitting(record: &Record) -> (Self, u64) {
        let tried = TRIED.map(Self);
        let all = tried.map(|it| (it, it.whole_blocks(record)));
        // The coarsest of several.
        all.into_iter().min_by_key(|it| it.1).unwrap_or_default()
    }

    /// A request in granules, rounded up.
    pub(crate) fn round(self, granules: u32) -> u32 {
        if self.0 == 0 || granules >= MOST || granules <= self.0 {
            return granules;
        }
        let step = (granules.next_power_of_two() / 2 / self.0).max(1);
        granules.next_multiple_of(step)
    }

    /// The same record, whose small requests are rounded up.
    pub(crate) fn rounded(self, record: &Record) -> Record {
        let mut rounded = record.clone();
        for request in &mut rounded.requests {
            request.granules = self.round(request.granules);
        }
        rounded
    }

    fn whole_blocks(self, record: &Record) -> u64 {
        let small = record.requests.iter().filter(|it| it.granules < MOST);
        let mut events = Vec::new();
        for request in small {
            let class = self.round(request.granules);
            events.push((request.begin, class, 1));
            if request.over != NEVER {
                events.push((request.over, class, -1_i64));
            }
        }
        events.sort_unstable_by_key(|it| it.0);
        let mut live = vec![(0_i64, 0_i64); MOST as usize + 1];
        for (_, class, more) in events {
            let (now, most) = &mut live[class as usize];
            *now += more;
            *most = (*most).max(*now);
        }
        let bytes = |(class, (_, most)): (u64, &(i64, i64))| class * GRANULE * *most as u64;
        (0..).zip(&live).map(bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinbuddy_events::Op;

    #[test]
    fn a_doubling_has_so_many_sizes() {
        let of = |classes| -> Vec<u32> {
            let mut sizes: Vec<u32> = (1..=64).map(|it| Classes(classes).round(it)).collect();
            sizes.dedup();
            sizes
        };
        assert_eq!(of(1), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(of(2), [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]);
        assert_eq!(of(4)[..10], [1, 2, 3, 4, 5, 6, 7, 8, 10, 12]);
        assert_eq!(of(MOST).len(), 64);
        assert_eq!(of(0).len(), 64);
        for granules in [MOST, MOST + 1, u32::MAX] {
            assert_eq!(Classes(1).round(granules), granules, "not small");
        }
        assert_eq!(Classes(1).round(MOST - 1), MOST);
    }

    fn record(sizes: impl Iterator<Item = u64>, live: usize) -> Record {
        let mut record = Record::new(u32::MAX);
        for (id, bytes) in (0..).zip(sizes) {
            record.push(Op::request(id, bytes));
            if let Some(id) = id.checked_sub(live as u64) {
                record.push(Op::free(id));
            }
        }
        record
    }

    #[test]
    fn few_blocks_have_few_classes_and_sizes_that_come_again_are_kept() {
        let mut random = crate::random::Random::new(1);
        let mut any = |count: usize| -> Vec<u64> {
            let sizes = (0..count).map(|_| (random.below(1023) as u64 + 1) * GRANULE);
            sizes.collect()
        };
        let of = |sizes: Vec<u64>, live| Classes::fitting(&record(sizes.into_iter(), live)).0.0;
        assert_eq!(of(any(4000), 1), 1);
        assert!(of(any(40_000), 4000) >= 4);
        let again = [700 << 10, 100 << 10, 3 << 20].repeat(100);
        assert_eq!(of(again, 3), MOST, "nothing is rounded");
    }
}
