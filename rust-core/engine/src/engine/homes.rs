//! Requests and memory by home: what each home needs, and a block from another one.
//!
//! A home is a label of regions; with one home nothing here makes a difference. The caller says whose turn it
//! is, and requests are served from that home alone, until it asks for memory elsewhere.

use super::Engine;
use crate::demand::Demand;
use crate::rival::Pins;
use crate::spread::Spread;
use crate::units::{Block, Home};

impl Engine {
    /// Requests are served from this home from now on.
    #[inline]
    pub fn turn_to(&mut self, home: Home) {
        if home != self.arena.home() {
            self.knows(home);
            self.arena.turn_to(home);
        }
    }

    /// The home whose turn it is.
    pub(crate) fn home(&self) -> Home {
        self.arena.home()
    }

    /// [`Self::request_anywhere`] at any home but the one whose turn it is.
    pub fn request_elsewhere(&mut self, bytes: usize) -> Option<Block> {
        let own = self.arena.home();
        let homes = self.demands.iter().map(|(home, _)| home);
        let others: Vec<Home> = homes.filter(|it| *it != own).collect();
        let found = others.into_iter().find_map(|home| {
            self.arena.turn_to(home);
            self.request_anywhere(bytes)
        });
        self.arena.turn_to(own);
        found
    }

    /// Makes sure that the home is counted. Once there are several, phases of different sizes are not looked for: they end at a
    /// low water of all memory, and each home has its own.
    pub(super) fn knows(&mut self, home: Home) {
        if self.demands.add(home) {
            self.phases.stop();
        }
    }

    /// The most bytes that were in blocks, but not cached, at a request since
    /// [`Self::cleared`]; of each home by itself.
    pub(crate) fn largest_set(&self) -> usize {
        self.demands.sum(|_, it| it.largest_set) as usize
    }

    /// The same, with one more request of `bytes` at the home whose turn it is; at least what is in use.
    pub(crate) fn set_with(&self, bytes: usize) -> usize {
        let more = self.more_here(bytes);
        self.demands.sum(|home, it| it.set_with(more(home))) as usize
    }

    /// How much more each home has to serve, with a request of `bytes` at the one whose turn it is.
    fn more_here(&self, bytes: usize) -> impl Fn(Home) -> u64 {
        let own = self.arena.home();
        move |home| if home == own { bytes as u64 } else { 0 }
    }

    /// The cache is cleared: the largest set becomes what is in use now, and blocks are cut from segments in use.
    pub(crate) fn cleared(&mut self) {
        self.demands.forget();
        self.spread = Spread::default();
    }

    /// What stock would have pinned, with one more request of `bytes`.
    pub(crate) fn rival_bytes(&self, bytes: usize) -> usize {
        let more = self.more_here(bytes);
        let pinned = |home, it: &Demand| it.rival.pinned_with(more(home));
        usize::try_from(self.demands.sum(pinned)).unwrap_or(usize::MAX)
    }

    /// The pins of stock, on the same requests.
    pub(crate) fn rival(&self) -> Pins {
        self.demands.iter().map(|(_, it)| it.rival.pins()).sum()
    }

    /// Bytes pinned at a home and in no block, without regions that were let go.
    pub(crate) fn ready_at(&self, home: Home) -> usize {
        let here = |at: Home, it: &Demand| if at == home { it.pinned - it.active } else { 0 };
        let leaving = self.leaving.iter().filter(|it| it.segment.home == home);
        let leaving: usize = leaving.map(|it| it.region().bytes).sum();
        self.demands.sum(here) as usize - leaving
    }
}

#[cfg(test)]
mod tests;
