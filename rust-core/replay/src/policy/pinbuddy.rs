//! Our engine, driven as the bridge drives it, on a machine where pins take no time.
//!
//! The provisioner decides, and a [`World`] carries it out: here with one thread, its cache, and
//! unlimited memory. What the worker pins is there before the next request, as in a program whose first
//! step takes longer than the pins.

use pinbuddy_core::{Growth, MAX_REGION, Settings as Core, Stats, WarmUp};

use super::{Change, Pins, Place, Policy};
use crate::MIB;
use crate::streams::Until;
use crate::world::{Machine, World};

/// The `BUDDY_` variables of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `BUDDY_BLOCK_SIZE_MB`, in bytes.
    pub block_bytes: u64,
    /// `BUDDY_BLOCK_COUNT`, where it is set.
    pub block_count: Option<u64>,
    /// `BUDDY_THRESHOLD_MB`, in bytes.
    pub threshold_bytes: u64,
    /// `BUDDY_WARMUP`.
    pub warm_up: WarmUp,
    /// `BUDDY_GROWTH`.
    pub growth: Growth,
}

impl Default for Settings {
    /// The bridge's own.
    fn default() -> Self {
        Self {
            block_bytes: 1024 * MIB,
            block_count: None,
            threshold_bytes: 4 * MIB,
            warm_up: WarmUp::Background,
            growth: Growth::Segment,
        }
    }
}

impl Settings {
    /// These with `BUDDY_WARMUP=off BUDDY_GROWTH=exact`.
    #[must_use]
    pub fn exact(self) -> Self {
        Self { warm_up: WarmUp::Off, growth: Growth::Exact, ..self }
    }

    /// The same for the provisioner. Memory that nobody uses stays: a replay is about requests.
    pub fn core(self) -> Core {
        Core {
            segment_bytes: size(self.block_bytes),
            threshold_bytes: size(self.threshold_bytes),
            growth: self.growth,
            warm_up: self.warm_up,
            count: self.block_count.map(size),
            idle: None,
        }
    }
}

/// A size as the engine counts; one that does not fit is longer than it serves.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(MAX_REGION)
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Pinbuddy(World);

impl Pinbuddy {
    /// An engine with nothing pinned.
    pub fn new(settings: Settings) -> Self {
        Self(World::new(settings.core(), Machine::INSTANT, 1).caching())
    }

    /// The engine's own statistics.
    pub fn stats(&self) -> Stats {
        self.0.provisioner.engine().stats()
    }

    /// Lets everything happen that does by `at`, in microseconds.
    #[inline]
    fn come_to(&mut self, at: u64) {
        self.0.come_to(at.saturating_mul(1000));
    }

    /// Bytes pinned now.
    #[inline]
    pub(crate) fn pinned(&self) -> u64 {
        self.0.pinned_bytes()
    }

    /// Whether [`Self::beside`] would do nothing, if nothing was freed since it was last called.
    #[inline]
    pub(crate) fn is_still(&self) -> bool {
        self.0.is_still()
    }

    /// A request of stock's, which was replayed beforehand; what stock has asked of the driver since, if anything.
    pub(crate) fn beside(&mut self, at: u64, pins: Option<Pins>) {
        self.come_to(at);
        self.0.stocks_request(pins);
    }

    /// `empty_cache`, after stock's, which was replayed beforehand.
    pub(crate) fn clear_beside(&mut self, at: u64, pins: Pins) {
        self.come_to(at);
        self.0.clear_beside(pins);
    }
}

impl Policy for Pinbuddy {
    #[inline]
    fn allocate(&mut self, at: u64, block: u32, bytes: u64) -> bool {
        self.come_to(at);
        self.0.request_at_once(block, bytes)
    }

    #[inline]
    fn free(&mut self, block: u32, until: &[Until]) {
        self.0.free(block, until);
    }

    fn clear(&mut self, at: u64) {
        self.come_to(at);
        self.0.clear();
    }

    fn pins(&self) -> Pins {
        self.0.pins()
    }

    fn place(&self, block: u32) -> Option<Place> {
        self.0.place(block)
    }

    fn watch(&mut self) {
        self.0.watch();
    }

    fn changes(&mut self) -> Vec<Change> {
        self.0.changes()
    }

    fn audit(&self) -> Result<(), String> {
        self.0.audit()
    }
}
