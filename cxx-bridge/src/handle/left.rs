//! How much may still be pinned, and whose memory that is.
//!
//! Knows the budget and what the system has set aside; not what is pinned, or what for.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::Handle;
use crate::backing::{Backing, Source};
use crate::budget::{Budget, Purse};

impl<B: Backing> Handle<B> {
    pub(super) fn has_chosen_limit(&self) -> bool {
        self.config.max_mb.value.is_some()
    }

    /// Whose memory the next region of `bytes` bytes takes. What is set aside is no part of the
    /// budget, unless the user chose one.
    pub(super) fn source(&self, bytes: usize) -> Source {
        if self.has_chosen_limit() {
            Source::Ordinary
        } else {
            self.backing.source(bytes)
        }
    }

    /// How much may still be pinned, in regions of about `bytes` bytes. Where that is too little, the
    /// budget may have been decided in a bad moment, and is decided again.
    pub(super) fn left(&self, bytes: usize, now: Instant) -> usize {
        let purse = self.purse();
        if purse.left() < bytes {
            purse.refresh(now, |taken| self.budget(taken));
        }
        let left = purse.left();
        match self.source(bytes) {
            Source::Ordinary => left,
            // One region takes the one or the other.
            Source::SetAside => left.max(self.backing.set_aside(bytes)),
        }
    }

    /// How many segments there is memory for.
    pub(super) fn room_for_segments(&self) -> usize {
        let bytes = self.config.block_bytes();
        let set_aside = match self.source(bytes) {
            Source::Ordinary => 0,
            Source::SetAside => self.backing.set_aside(bytes),
        };
        let purse = self.purse();
        purse.refresh(Instant::now(), |taken| self.budget(taken));
        (purse.left() / bytes).saturating_add(set_aside / bytes)
    }

    /// What may be pinned: decided at the first call, which comes before the first pin.
    pub(super) fn purse(&self) -> &Purse {
        self.used.store(true, Ordering::Relaxed);
        self.purse.get_or_init(|| Purse::new(self.budget(0)))
    }

    /// The budget where so much of it is taken, by a new decision.
    pub(super) fn budget(&self, taken: usize) -> Budget {
        self.backing.budget(self.config.max_mb.value, taken)
    }
}
