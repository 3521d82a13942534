//! A process in simulated time: threads that request and free pinned memory, the background worker, the
//! driver that registers one region at a time, a budget.
//!
//! Carries out the provisioner's decisions, as the bridge does in a real process; stock's model serves
//! requests that pass through. Events happen in the order of their times; if pins take no time, the
//! worker is done before the next request. Knows no program: its caller says when which thread requests
//! what.
//!
//! Invariants: a thread has one request at a time; memory counts as taken from before it is pinned until
//! after it is unpinned; nothing is random.

mod at_once;
mod cache;
mod lane;
mod machine;
mod worker;

use std::time::Duration;

use pinbuddy_core::{Block, GRANULE, IdleSegment, NewSegment, Permit, Provisioner, Region, SegmentId, Settings, Took};

use crate::policy::stock::Stock;
use crate::policy::{Change, Changes, Order as Queues, Pending, Pins, Place, Policy, place};
use crate::streams::Until;

pub use lane::Served;
pub use machine::{Machine, Nanos};

use cache::Caches;
use lane::Lane;
use machine::at_pace;
use worker::Worker;

fn place_of(region: Region) -> Place {
    Place { address: region.base as u64, bytes: region.bytes as u64 }
}

/// Later than any event.
const NEVER: Nanos = Nanos::MAX;

/// The engine's block for a request, if any, and the thread cache that it returns to. Counted in
/// granules, so half as large as with a `Block`, which made a replay a tenth slower.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    segment: u32,
    start: u32,
    /// 0 for no block.
    granules: u32,
    /// The thread whose cache it returns to.
    thread: u16,
    /// Whether that thread had asked for the size before; else the block is not cached.
    again: bool,
}

impl Held {
    #[inline]
    fn of(block: Block, thread: usize, again: bool) -> Self {
        Self {
            segment: block.segment.to_u32(),
            // A region is at most MAX_REGION long: it fits.
            start: (block.offset / GRANULE) as u32,
            granules: (block.bytes / GRANULE) as u32,
            thread: thread as u16,
            again,
        }
    }

    #[inline]
    fn block(self) -> Option<Block> {
        (self.granules > 0).then(|| Block {
            segment: SegmentId::from_u32(self.segment),
            offset: self.start as usize * GRANULE,
            bytes: self.granules as usize * GRANULE,
        })
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct World {
    machine: Machine,
    pub(crate) provisioner: Provisioner,
    stock: Stock,
    /// What stock asked of the driver for requests that were replayed on it beforehand.
    beside: Pins,
    now: Nanos,
    /// When the driver has done its queue.
    driver: Nanos,
    lanes: Vec<Lane>,
    worker: Worker,
    /// By the block's number.
    blocks: Vec<Held>,
    pending: Pending<Held>,
    caches: Caches,
    /// The smallest request that the engine serves.
    threshold: usize,
    /// How many captures, and pins of working-set regions, are under way.
    captures: u32,
    renewals: u32,
    /// Where the next region starts. No address is used twice.
    base: usize,
    changes: Changes,
    /// Bytes that the engine has taken from the budget.
    taken: u64,
    /// Without stock's.
    pins: Pins,
    /// All bytes that were ever pinned, including stock's.
    bytes_pinned: u64,
    /// The most that the engine and stock had pinned together.
    peak: u64,
}

impl World {
    /// A process with so many threads and nothing pinned. Nothing goes back because it is unused: `idle` does nothing.
    pub fn new(settings: Settings, machine: Machine, threads: usize) -> Self {
        Self {
            machine,
            threshold: settings.threshold_bytes,
            provisioner: Provisioner::new(settings),
            stock: Stock::default(),
            beside: Pins::default(),
            now: 0,
            driver: 0,
            lanes: (0..threads).map(|_| Lane::default()).collect(),
            worker: Worker::default(),
            blocks: Vec::new(),
            pending: Pending::new(Queues::PerStream),
            caches: Caches::new(0),
            captures: 0,
            renewals: 0,
            base: 1 << 32,
            changes: Changes::default(),
            taken: 0,
            pins: Pins::default(),
            bytes_pinned: 0,
            peak: 0,
        }
    }

    /// The same with thread caches in front of the engine.
    #[must_use]
    pub fn caching(mut self) -> Self {
        self.caches = Caches::new(self.lanes.len());
        self
    }

    /// The simulated time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// When the next event happens by itself.
    pub fn next_event(&self) -> Nanos {
        let lanes = self.lanes.iter().map(|it| it.at);
        let first = lanes.min().unwrap_or(NEVER);
        first.min(self.worker.at)
    }

    /// Lets the next event happen, if it does by `until`; returns a thread that was served by it.
    pub fn advance(&mut self, until: Nanos) -> Option<usize> {
        let at = self.next_event();
        if at > until || at == NEVER {
            self.now = self.now.max(until.min(at));
            return None;
        }
        self.now = self.now.max(at);
        if self.worker.at == at {
            self.poll_worker();
            self.tend_worker();
            return None;
        }
        let lane = self.lanes.iter().position(|it| it.at == at)?;
        let served = self.poll_lane(lane);
        self.tend_worker();
        served.then_some(lane)
    }

    /// A block is freed, and may be used again once each of these streams has reached its time, in
    /// microseconds. Does nothing for a block that was not served.
    #[inline]
    pub fn free(&mut self, block: u32, until: &[Until]) {
        let held = std::mem::take(&mut self.blocks[block as usize]);
        match held.block() {
            None => self.stock.free(block, until),
            Some(block) if until.is_empty() => self.end_use(held, block),
            Some(block) => {
                let deferred = self.provisioner.engine_mut().defer(block);
                debug_assert_eq!(deferred, Ok(()), "the engine's own block");
                self.pending.push(held, until);
            }
        }
    }

    /// `empty_cache`.
    pub fn clear(&mut self) {
        self.stock.clear(self.now / 1000);
        self.reap();
        self.clear_caches();
        let idle = self.provisioner.clear();
        self.unpin(idle);
        self.changed();
        self.tend_worker();
    }

    /// A graph capture begins, which empties the cache. Until it ends no event is queried, ours or
    /// stock's.
    pub fn begin_capture(&mut self) {
        self.clear();
        self.captures += 1;
        self.stock.hold_back(true);
    }

    /// A graph capture ends.
    pub fn end_capture(&mut self) {
        self.captures -= 1;
        self.stock.hold_back(self.captures > 0);
    }

    /// What the engine and stock asked of the driver.
    pub fn pins(&self) -> Pins {
        let stocks = self.stock.pins().with(self.beside, 0);
        self.pins.with(stocks, self.peak)
    }

    /// Where a live block is.
    pub fn place(&self, block: u32) -> Option<Place> {
        let held = self.blocks.get(block as usize)?;
        let Some(block_of_engine) = held.block() else {
            return self.stock.place(block);
        };
        Some(Place {
            address: self.provisioner.engine().address(block_of_engine) as u64,
            bytes: block_of_engine.bytes as u64,
        })
    }

    /// Notes down from now on what the engine and stock pin and unpin.
    pub(crate) fn watch(&mut self) {
        self.changes.watch();
        self.stock.watch();
    }

    /// What was noted down since the last call.
    pub(crate) fn changes(&mut self) -> Vec<Change> {
        let mut changes = self.changes.take();
        changes.append(&mut self.stock.changes());
        changes
    }

    /// All bytes that were ever pinned, including stock's.
    pub fn bytes_pinned(&self) -> u64 {
        self.bytes_pinned
    }

    /// Audits the engine, and compares its statistics with this world's.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn audit(&self) -> Result<(), String> {
        self.stock.audit()?;
        let engine = self.provisioner.engine();
        engine.audit().map_err(|why| why.to_string())?;
        let stats = engine.stats();
        let bytes = |it: &Held| u64::from(it.granules) * GRANULE as u64;
        let live: u64 = self.blocks.iter().map(bytes).sum();
        let pending: u64 = self.pending.iter().map(bytes).sum();
        let cached = self.caches.bytes() as u64;
        let (active, all) = (stats.active_bytes.current, live + pending + cached);
        for (what, found, expected) in [
            ("pinned", stats.pinned_bytes.current, self.pins.bytes),
            ("active", active, all),
            ("pending", stats.pending_bytes.current, pending),
        ] {
            if found != expected {
                return Err(format!("{what}: {found} by the engine, {expected} here"));
            }
        }
        Ok(())
    }

    fn left(&self) -> usize {
        debug_assert!(self.taken <= self.machine.budget, "over the budget");
        usize::try_from(self.machine.budget - self.taken).unwrap_or(usize::MAX)
    }

    fn time(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    #[inline]
    fn reap(&mut self) {
        if self.captures > 0 {
            return;
        }
        while let Some(held) = self.pending.pop(self.now / 1000) {
            let Some(block) = held.block() else { continue };
            let cached = self.provisioner.engine_mut().cache(block);
            debug_assert_eq!(cached, Ok(()), "a pending block");
            self.end_use(held, block);
        }
    }

    #[inline]
    fn release(&mut self, block: Block) {
        let released = self.provisioner.engine_mut().release(block);
        debug_assert_eq!(released, Ok(()), "the engine's own block");
    }

    /// Unpins these; returns how long that takes.
    fn unpin(&mut self, idle: Vec<IdleSegment>) -> Nanos {
        let bytes = |it: &IdleSegment| it.region().bytes as u64;
        let all: u64 = idle.iter().map(bytes).sum();
        for it in &idle {
            self.pins.unpin(bytes(it));
            self.changes.note(place_of(it.region()), false);
        }
        self.taken -= all;
        at_pace(self.machine.unpin, all)
    }

    /// Puts a pin into the driver's queue; returns when it ends.
    fn queue(&mut self, takes: Nanos) -> Nanos {
        self.driver = self.driver.max(self.now).saturating_add(takes);
        self.driver
    }

    /// The region of a permit is pinned; returns the block of its request, if it has one.
    fn pinned(&mut self, permit: &Permit, took: Took) -> Option<Block> {
        let (base, bytes) = (self.base, permit.bytes);
        self.base += bytes;
        self.pins.pin(bytes as u64);
        self.bytes_pinned += bytes as u64;
        self.note_peak();
        let region = Region { base, bytes };
        self.changes.note(place_of(region), true);
        let segment = NewSegment::new(region);
        let adopted = segment.and_then(|it| self.provisioner.pinned(permit.id, it, took));
        debug_assert!(adopted.is_ok(), "{adopted:?}");
        self.changed();
        adopted.ok().flatten()
    }

    fn note_peak(&mut self) {
        self.peak = self.peak.max(self.pinned_bytes());
    }

    /// Waiting threads ask again.
    fn changed(&mut self) {
        for lane in &mut self.lanes {
            if lane.waits() {
                lane.at = self.now;
            }
        }
        self.wake_worker();
    }
}
