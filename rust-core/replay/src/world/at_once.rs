//! One thread's steps with no detour through the order of events, for replays of long traces; and what a request of
//! stock's does to the engine, where stock was replayed beforehand.
//!
//! Invariant: each does what the events that it stands for would do (tested, by replays of both kinds).

use super::{NEVER, Nanos, World};
use crate::policy::Pins;

impl World {
    /// Lets everything happen that does by `at`.
    #[inline]
    pub(crate) fn come_to(&mut self, at: Nanos) {
        while self.next_event() <= at {
            self.advance(at);
        }
        self.now = self.now.max(at);
    }

    /// The first thread, which nothing keeps waiting, requests `bytes` bytes now. Returns whether that was a miss.
    #[inline]
    pub(crate) fn request_at_once(&mut self, block: u32, bytes: u64) -> bool {
        debug_assert!(self.next_event() > self.now, "all came to this moment");
        self.begin(0, block, bytes);
        let served = self.ask_first(0);
        self.tend_worker();
        if !served {
            while self.advance(Nanos::MAX - 1).is_none() {}
        }
        self.served(0).missed
    }

    /// Whether nothing happens by itself, nor when a request of stock's has events queried.
    #[inline]
    pub(crate) fn is_still(&self) -> bool {
        self.worker.at == NEVER && self.pending.is_empty()
    }

    /// A request of stock's, after which it has asked this of the driver, if that has changed.
    pub(crate) fn stocks_request(&mut self, pins: Option<Pins>) {
        self.reap();
        if let Some(pins) = pins {
            self.bytes_pinned += pins.bytes.saturating_sub(self.beside.bytes);
            self.beside = pins;
            self.note_peak();
            self.queue(0);
            self.tend_worker();
            // It waits for the driver, and the worker does not.
            while self.next_event() <= self.now {
                self.advance(self.now);
            }
        }
        self.tend_worker();
    }

    /// `empty_cache`, after which stock has asked this of the driver.
    pub(crate) fn clear_beside(&mut self, pins: Pins) {
        self.beside = pins;
        self.clear();
    }

    /// Bytes pinned now, stock's included.
    #[inline]
    pub(crate) fn pinned_bytes(&self) -> u64 {
        self.pins.bytes.saturating_add(self.stocks_bytes())
    }

    /// What stock has pinned, here or as it was replayed beforehand.
    pub(super) fn stocks_bytes(&self) -> u64 {
        let here = super::Policy::pins(&self.stock).bytes;
        here.saturating_add(self.beside.bytes)
    }
}
