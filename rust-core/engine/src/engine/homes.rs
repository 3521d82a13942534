//! Requests and memory by home: what each home needs, and a block from another one.
//!
//! A home is a label of regions; with one home nothing here makes a difference. The caller says whose turn it
//! is, and requests are served from that home alone, until it asks for memory elsewhere.

use super::Engine;
use crate::demand::Demand;
use crate::rival::Rival;
use crate::units::{Block, Home};

impl Engine {
    /// Requests are served from this home from now on.
    #[inline]
    pub fn turn_to(&mut self, home: Home) {
        if home != self.arena.home {
            self.knows(home);
            self.arena.home = home;
        }
    }

    /// The home whose turn it is.
    pub(crate) fn home(&self) -> Home {
        self.arena.home
    }

    /// Where a block lies; the default home if its segment is gone.
    pub fn home_of(&self, block: Block) -> Home {
        let segment = self.arena.get(block.segment);
        segment.map_or_else(Home::default, |it| it.home)
    }

    /// [`Self::request_anywhere`] at any home but the one whose turn it is.
    pub fn request_elsewhere(&mut self, bytes: usize) -> Option<Block> {
        let own = self.arena.home;
        let mut found = None;
        for home in (0..=u8::MAX).take(self.demands.len()).map(Home) {
            if home != own && found.is_none() {
                self.arena.home = home;
                found = self.request_anywhere(bytes);
            }
        }
        self.arena.home = own;
        found
    }

    /// Makes sure that the home is counted.
    pub(super) fn knows(&mut self, home: Home) {
        let least = usize::from(home.0) + 1;
        if self.demands.len() < least {
            self.demands.resize_with(least, Demand::default);
        }
    }

    #[inline]
    pub(super) fn demand_mut(&mut self, home: Home) -> &mut Demand {
        &mut self.demands[usize::from(home.0)]
    }

    fn sum(&self, of: impl Fn(&Demand) -> u64) -> u64 {
        self.demands.iter().map(of).sum()
    }

    /// The most bytes that were in blocks, but not cached, at a request since
    /// [`Self::forget_largest_set`]; of each home by itself.
    pub(crate) fn largest_set(&self) -> usize {
        self.sum(|it| it.largest_set) as usize
    }

    /// The same, with one more request of `bytes` at the home whose turn it is.
    pub(crate) fn set_with(&self, bytes: usize) -> usize {
        let own = &self.demands[usize::from(self.arena.home.0)];
        let others = self.largest_set() - own.largest_set as usize;
        others + own.set_with(bytes as u64) as usize
    }

    /// The largest set becomes what is in use now.
    pub(crate) fn forget_largest_set(&mut self) {
        self.demands.iter_mut().for_each(Demand::forget);
    }

    /// What stock would have pinned, with one more request of `bytes`.
    pub(crate) fn rival_bytes(&self, bytes: usize) -> usize {
        let own = &self.demands[usize::from(self.arena.home.0)].rival;
        let others = self.sum(|it| it.rival.pinned_with(0)) - own.pinned_with(0);
        usize::try_from(others + own.pinned_with(bytes as u64)).unwrap_or(usize::MAX)
    }

    /// The pins of stock, on the same requests.
    pub(crate) fn rival(&self) -> Rival {
        let rivals = self.demands.iter().map(|it| it.rival);
        rivals.reduce(|all, one| all.and(&one)).unwrap_or_default()
    }

    /// Bytes pinned at a home and in no block, without regions that were let go.
    pub(crate) fn ready_at(&self, home: Home) -> usize {
        let Some(demand) = self.demands.get(usize::from(home.0)) else {
            return 0;
        };
        let leaving = self.leaving.iter().filter(|it| it.segment.home == home);
        let leaving: usize = leaving.map(|it| it.region().bytes).sum();
        (demand.pinned - demand.active) as usize - leaving
    }
}

#[cfg(test)]
mod tests;
