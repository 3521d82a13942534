//! What the live page says of a handle, from counters that exist; and how long the program waits for the driver.
//!
//! Invariant: a request that finds its block pays nothing for this.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use pinbuddy_live::{Budget, Counters, MOST_BYTES, NodeUse};

use super::Handle;
use super::planned::Planned;
use crate::backing::{Completions, Memory};
use crate::ffi::Caches;

/// Requests that waited for memory to be pinned, and for how long.
#[derive(Debug, Default)]
pub(super) struct Waits {
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

/// A wait of the calling thread's, until it is dropped; the allocator around us hears of it.
#[derive(Debug)]
pub(super) struct Heard<'a>(&'a dyn Completions);

/// A request that waits, until it is dropped.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    waits: &'a Waits,
    since: Instant,
    _heard: Heard<'a>,
}

impl Drop for Heard<'_> {
    fn drop(&mut self) {
        self.0.wait_ends();
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let nanoseconds = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.waits.count.fetch_add(1, Ordering::Relaxed);
        let to = &self.waits.nanoseconds;
        to.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

impl<M: Memory> Handle<M> {
    /// The calling thread begins to wait for the driver, in a request or while memory is given back.
    pub(super) fn waits_for_driver(&self, in_request: bool) -> Heard<'_> {
        self.completions.wait_begins(in_request);
        Heard(&*self.completions)
    }

    /// A request begins to wait for memory to be pinned.
    pub(super) fn request_waits(&self) -> Waiting<'_> {
        Waiting { waits: &self.waits, since: Instant::now(), _heard: self.waits_for_driver(true) }
    }

    /// What the page says: how memory stands, and by node.
    pub fn shown(&self, caches: impl Fn() -> Caches) -> (Counters, Vec<NodeUse>) {
        (self.counters(caches), self.nodes().unwrap_or_default())
    }

    /// How memory stands, while caches have what `caches` says. Flushes nothing. Caches change meanwhile, so numbers
    /// may be off by what a moment changes, and never contradict each other.
    pub fn counters(&self, caches: impl Fn() -> Caches) -> Counters {
        let before = caches().bytes;
        let stats = self.stats();
        // Read after the engine's: a flush in between hides requests, and counts none twice.
        let caches = caches();
        let plan = self.planned.as_ref().map(Planned::counts);
        let plan = plan.unwrap_or_default();
        let retired = stats.is_none();
        let stats = stats.unwrap_or_default();
        let pinned = stats.pinned_bytes.current;
        let active = stats.active_bytes.current.min(pinned);
        let pending = stats.pending_bytes.current.min(active);
        Counters {
            retired,
            pinned,
            peak_pinned: stats.pinned_bytes.peak,
            live: (active - pending).saturating_sub(caches.bytes.max(before)),
            pending,
            budget: self.pinner.latest_budget().map_or(Budget::Unknown, limit),
            segments: stats.segments.current,
            served: stats.hits + caches.served,
            misses: stats.misses,
            planned: plan.hits,
            unplanned: plan.misses + plan.unplanned,
            waits: self.waits.count.load(Ordering::Relaxed),
            waited: self.waits.nanoseconds.load(Ordering::Relaxed),
        }
    }
}

/// More than a machine has stands for no limit.
fn limit(bytes: usize) -> Budget {
    match bytes as u64 {
        bytes @ ..=MOST_BYTES => Budget::Bytes(bytes),
        _ => Budget::Unlimited,
    }
}
