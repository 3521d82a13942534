//! Whether a plan is this program's: how many of its requests it has places for.

use std::ops::AddAssign;

use crate::Counts;

/// A plan that serves fewer than one in so many requests is another program's.
const ONE_IN: usize = 2;

/// A run of fewer requests says nothing.
const FEWEST: usize = 64;

/// How many requests a plan had places for, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests with a place.
    pub served: usize,
    /// All of them.
    pub asked: usize,
}

impl Served {
    /// Whether the plan is this program's.
    pub fn fits(self) -> bool {
        self.served * ONE_IN >= self.asked
    }

    /// Whether it is not, as far as a whole run can tell.
    pub fn is_misfit(self) -> bool {
        self.asked >= FEWEST && !self.fits()
    }

    /// Whether it is, as far as a whole run can tell.
    pub fn is_fit(self) -> bool {
        self.asked >= FEWEST && self.fits()
    }
}

impl AddAssign<Counts> for Served {
    fn add_assign(&mut self, more: Counts) {
        self.served += (more.hits + more.borrowed) as usize;
        self.asked += (more.hits + more.misses + more.unplanned) as usize;
    }
}
