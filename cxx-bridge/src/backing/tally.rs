//! Counts while a region is filled, for several threads: how long threads were idle, and how much has
//! small pages instead of huge ones.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::collapse::Scattered;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Tally {
    idle_nanos: AtomicU64,
    scattered: AtomicUsize,
    /// The kernel's last error about small pages, as a number.
    why: AtomicI32,
}

impl Tally {
    /// A thread waited or rested for `time`.
    pub(super) fn idled(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.idle_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// How long threads waited and rested, in all.
    pub(super) fn idle(&self) -> Duration {
        Duration::from_nanos(self.idle_nanos.load(Ordering::Relaxed))
    }

    /// Adds memory that stayed in small pages.
    pub(super) fn scattered(&self, more: &Scattered) {
        self.scattered.fetch_add(more.bytes, Ordering::Relaxed);
        let number = more.why.raw_os_error().unwrap_or(0);
        self.why.store(number, Ordering::Relaxed);
    }

    /// How much stayed in small pages, and why; `None` if nothing did.
    pub(super) fn in_small_pages(&self) -> Option<Scattered> {
        let bytes = self.scattered.load(Ordering::Relaxed);
        let why = io::Error::from_raw_os_error(self.why.load(Ordering::Relaxed));
        (bytes > 0).then_some(Scattered { bytes, why })
    }
}
