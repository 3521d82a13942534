//! What the requests of one home need: how much of it is in use, the largest set, and what stock would have pinned.
//!
//! A program that works on one device and then on the next has a set for each: they are added up. Counts a
//! block at the home at which it lies. Knows no segment.

use std::iter;

use crate::engine::Cached;
use crate::rival::Rival;
use crate::units::Home;

/// See the module's documentation. In bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// In blocks, live or pending.
    pub(crate) active: u64,
    /// Of all regions, also of those that were let go.
    pub(crate) pinned: u64,
    /// The most that was in blocks, but not cached, at a request. A set that cached blocks alone make up is
    /// not seen. Resetting peaks does not reset it.
    pub(crate) largest_set: u64,
    pub(crate) rival: Rival,
}

impl Demand {
    /// A block is taken, while the caller has `cached` of this home in its caches.
    #[inline]
    pub(crate) fn taken(&mut self, bytes: u64, cached: Cached) {
        self.active += bytes;
        self.rival.taken(bytes, cached.alike);
        // The caches may have changed since they were counted.
        let set = self.active.saturating_sub(cached.bytes as u64);
        self.largest_set = self.largest_set.max(set);
    }

    #[inline]
    pub(crate) fn released(&mut self, bytes: u64) {
        self.active -= bytes;
        self.rival.released(bytes);
    }

    /// The largest set becomes what is in use now, and stock's cache is emptied too.
    pub(crate) fn forget(&mut self) {
        self.largest_set = self.active;
        self.rival.clear();
    }

    /// The largest set, with one more request of `bytes`; cached blocks count, since they may be in use by now.
    pub(crate) fn set_with(&self, bytes: u64) -> u64 {
        self.largest_set.max(self.active + bytes)
    }
}

/// The demand of each home that was ever named. Most processes have one home, whose demand lies here and not behind a pointer:
/// each block changes it twice.
#[derive(Debug, Default)]
pub(crate) struct Demands {
    first: Demand,
    others: Vec<Demand>,
}

impl Demands {
    /// Makes sure that a home is counted; whether it was not.
    pub(crate) fn add(&mut self, home: Home) -> bool {
        let others = usize::from(home.0);
        let is_new = self.others.len() < others;
        if is_new {
            self.others.resize_with(others, Demand::default);
        }
        is_new
    }

    #[inline]
    pub(crate) fn of_mut(&mut self, home: Home) -> &mut Demand {
        match home.0 {
            0 => &mut self.first,
            other => &mut self.others[usize::from(other) - 1],
        }
    }

    /// Those of all homes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Home, &Demand)> {
        let demands = iter::once(&self.first).chain(&self.others);
        (0..=u8::MAX).map(Home).zip(demands)
    }

    /// Of each home, together.
    pub(crate) fn sum(&self, mut of: impl FnMut(Home, &Demand) -> u64) -> u64 {
        self.iter().map(|(home, demand)| of(home, demand)).sum()
    }

    /// Each largest set becomes what is in use now.
    pub(crate) fn forget(&mut self) {
        let demands = iter::once(&mut self.first).chain(&mut self.others);
        demands.for_each(Demand::forget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cached_is_in_no_set() {
        let mut demand = Demand::default();
        demand.taken(100, Cached::default());
        let cached = Cached { bytes: 100, alike: 0 };
        demand.taken(70, cached);
        assert_eq!((demand.largest_set, demand.active), (100, 170));
        demand.taken(40, cached);
        assert_eq!(demand.largest_set, 110);
        demand.taken(1, Cached::default());
        assert_eq!(demand.largest_set, 211, "it was taken from the cache");
        demand.released(100);
        assert_eq!((demand.set_with(50), demand.set_with(200)), (211, 311));
        demand.forget();
        assert_eq!(demand.largest_set, 111);
    }
}
