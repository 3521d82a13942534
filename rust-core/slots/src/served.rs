//! Whether a plan is this program's: how many of its requests it has places for.

use std::iter::Sum;

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

impl From<Counts> for Served {
    fn from(it: Counts) -> Self {
        Self { served: (it.hits + it.borrowed) as usize, asked: (it.hits + it.misses + it.unplanned) as usize }
    }
}

impl Sum for Served {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, it| Self { served: sum.served + it.served, asked: sum.asked + it.asked })
    }
}
