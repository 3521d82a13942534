//! The engine, driven as the bridge drives it (`cxx-bridge/src/handle/room.rs`).
//!
//! Requests below the threshold are stock's. A request that finds no room starts the warm-up that
//! is owed: with `sync` all of it comes first; in the background the request's own region comes
//! first, and counts as a part of it, and the rest is there before the next request, as where the
//! program's first step takes longer than the pins. Afterwards the engine grows by what it asks
//! for: a segment, or with exact growth, and above a segment, a region for the request. With exact
//! growth it also gives idle regions back for others in their stead, where it says so. A clear
//! gives back what is idle, and segments are owed again.
//!
//! The machine has as much memory as anybody asks for: no budget is modelled.

use pinbuddy_core::{
    AdoptError, Block, Config, Decision, Engine, GRANULE, Growth, MAX_REGION, NewSegment, Region,
    SegmentId, Stats,
};

use super::stock::Stock;
use super::{Order, Pending, Pins, Policy, place};
use crate::MIB;
use crate::streams::Until;

/// When segments are pinned ahead: `BUDDY_WARMUP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// Behind the first request that finds no room.
    Background,
    /// By that request.
    Sync,
    /// Not at all.
    Off,
}

/// What the `BUDDY_` variables of the same names say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `BUDDY_BLOCK_SIZE_MB`, in bytes.
    pub block_bytes: u64,
    /// `BUDDY_BLOCK_COUNT`.
    pub block_count: u64,
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
            block_count: 8,
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
        Self {
            warm_up: WarmUp::Off,
            growth: Growth::Exact,
            ..self
        }
    }
}

/// The engine's block for a request, or none. In granules, and so half as long as an
/// `Option<Block>`: with that, writing it down and reading it took a tenth of a replay.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    segment: u32,
    start: u32,
    /// 0 where there is none.
    granules: u32,
}

impl Held {
    #[inline]
    fn of(block: Block) -> Self {
        Self {
            segment: block.segment.to_u32(),
            // Of a region that is at most MAX_REGION long.
            start: (block.offset / GRANULE) as u32,
            granules: (block.bytes / GRANULE) as u32,
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
pub struct Pinbuddy {
    settings: Settings,
    engine: Engine,
    stock: Stock,
    /// By the block's number.
    blocks: Vec<Held>,
    pending: Pending<Block>,
    /// Segments that the next warm-up pins.
    owed: u64,
    /// Bytes that requests pinned by themselves, short of a segment.
    credit: u64,
    /// Where the next region starts: one behind the other, none twice.
    base: usize,
    /// Without stock's.
    pins: Pins,
    /// The most that the engine and stock had pinned together.
    peak: u64,
}

impl Pinbuddy {
    /// An engine with nothing pinned.
    pub fn new(settings: Settings) -> Self {
        let engine = Engine::new(Config {
            segment_bytes: size(settings.block_bytes),
            threshold_bytes: size(settings.threshold_bytes),
            growth: settings.growth,
        });
        Self {
            settings,
            engine: match settings.growth {
                Growth::Segment => engine,
                Growth::Exact => engine.renewing(),
            },
            stock: Stock::default(),
            blocks: Vec::new(),
            pending: Pending::new(Order::PerStream),
            owed: settings.block_count,
            credit: 0,
            base: 1 << 32,
            pins: Pins::default(),
            peak: 0,
        }
    }

    /// The engine's own statistics.
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    #[inline]
    fn reap(&mut self, at: u64) {
        if !self.pending.is_empty() {
            while let Some(block) = self.pending.pop(at) {
                self.release(block);
            }
        }
    }

    #[inline]
    fn release(&mut self, block: Block) {
        let released = self.engine.release(block);
        debug_assert_eq!(released, Ok(()), "the engine's own block");
    }

    /// A block for a request for which the engine wants `need` bytes pinned, or nothing where it
    /// takes no more regions.
    #[cold]
    fn make_room(&mut self, bytes: usize, need: usize) -> Option<Block> {
        let Settings {
            warm_up, growth, ..
        } = self.settings;
        let block_bytes = size(self.settings.block_bytes);
        let dedicated = need > block_bytes;
        let own = Engine::exact_region(bytes).map(|own| {
            if bytes <= block_bytes {
                own.min(block_bytes)
            } else {
                own
            }
        })?;
        match warm_up {
            WarmUp::Sync if self.owed > 0 => {
                self.warm();
                if let Decision::Block(block) = self.engine.request(bytes) {
                    return Some(block);
                }
            }
            WarmUp::Background if self.owed > 0 => {
                let block = self.pin_for(bytes, own);
                if block.is_some() && own <= block_bytes {
                    self.credit += own as u64;
                    let segments = self.credit / self.settings.block_bytes;
                    self.credit %= self.settings.block_bytes;
                    self.owed = self.owed.saturating_sub(segments);
                }
                self.warm();
                return block;
            }
            _ => {}
        }
        let whole = growth == Growth::Segment && !dedicated;
        self.pin_for(bytes, if whole { need } else { own })
            .or_else(|| self.engine.request_anywhere(bytes))
    }

    /// A block for a request for which the engine wants idle regions given back first, and one of
    /// `region` bytes pinned in their stead, or none.
    #[cold]
    fn renew(&mut self, bytes: usize, region: usize) -> Option<Block> {
        for outworn in self.engine.take_outworn() {
            self.pins.unpin(outworn.region().bytes as u64);
        }
        if region > 0 {
            self.pin_with(region, Engine::adopt_home);
        }
        match self.engine.request(bytes) {
            Decision::Block(block) => Some(block),
            Decision::Pin { bytes: need } => self.make_room(bytes, need),
            _ => None,
        }
    }

    /// Pins the segments that are owed.
    fn warm(&mut self) {
        for _ in 0..std::mem::take(&mut self.owed) {
            if !self.pin(size(self.settings.block_bytes)) {
                break;
            }
        }
    }

    fn pin_for(&mut self, bytes: usize, region: usize) -> Option<Block> {
        if !self.pin(region) {
            return None;
        }
        match self.engine.request(bytes) {
            Decision::Block(block) => Some(block),
            _ => None,
        }
    }

    /// Whether the engine has one more region of `bytes` bytes.
    fn pin(&mut self, bytes: usize) -> bool {
        self.pin_with(bytes, Engine::adopt)
    }

    fn pin_with(
        &mut self,
        bytes: usize,
        adopt: impl FnOnce(&mut Engine, NewSegment) -> Result<SegmentId, AdoptError>,
    ) -> bool {
        let region = Region {
            base: self.base,
            bytes,
        };
        let adopted = NewSegment::new(region).and_then(|segment| adopt(&mut self.engine, segment));
        if adopted.is_ok() {
            self.base += bytes;
            self.pins.pin(bytes as u64);
            self.note_peak();
        }
        adopted.is_ok()
    }

    fn note_peak(&mut self) {
        self.peak = self
            .peak
            .max(self.pins.bytes.saturating_add(self.stock.pins().bytes));
    }
}

/// As the engine counts; what does not fit is above all that it serves.
#[inline]
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(MAX_REGION)
}

impl Policy for Pinbuddy {
    #[inline]
    fn allocate(&mut self, at: u64, block: u32, bytes: u64) -> bool {
        self.reap(at);
        let mut pinned = false;
        if bytes >= self.settings.threshold_bytes {
            let served = match self.engine.request(size(bytes)) {
                Decision::Block(found) => {
                    *place(&mut self.blocks, block) = Held::of(found);
                    return false;
                }
                Decision::Pin { bytes: need } => self.make_room(size(bytes), need),
                Decision::Renew { bytes: region } => self.renew(size(bytes), region),
                _ => None,
            };
            pinned = true;
            if let Some(found) = served {
                *place(&mut self.blocks, block) = Held::of(found);
                return pinned;
            }
        }
        *place(&mut self.blocks, block) = Held::default();
        if self.stock.allocate(at, block, bytes) {
            pinned = true;
            self.note_peak();
        }
        pinned
    }

    #[inline]
    fn free(&mut self, block: u32, until: &[Until]) {
        match std::mem::take(&mut self.blocks[block as usize]).block() {
            None => self.stock.free(block, until),
            Some(block) if until.is_empty() => self.release(block),
            Some(block) => {
                let deferred = self.engine.defer(block);
                debug_assert_eq!(deferred, Ok(()), "the engine's own block");
                self.pending.push(block, until);
            }
        }
    }

    fn clear(&mut self, at: u64) {
        self.stock.clear(at);
        self.reap(at);
        let mut split = 0;
        for segment in self.engine.take_idle(usize::MAX) {
            let bytes = segment.region().bytes as u64;
            self.pins.unpin(bytes);
            if !segment.is_dedicated() {
                split += bytes;
            }
        }
        if self.settings.block_count > 0 {
            self.owed += split / self.settings.block_bytes;
        }
    }

    fn pins(&self) -> Pins {
        self.pins.with(self.stock.pins(), self.peak)
    }

    fn audit(&self) -> Result<(), String> {
        self.stock.audit()?;
        self.engine.audit().map_err(|why| why.to_string())?;
        let stats = self.engine.stats();
        let live = self
            .blocks
            .iter()
            .filter_map(|it| it.block())
            .map(|it| it.bytes as u64)
            .sum();
        let pending = self.pending.iter().map(|it| it.bytes as u64).sum();
        for (what, found, expected) in [
            ("pinned", stats.pinned_bytes.current, self.pins.bytes),
            ("live", stats.live_bytes.current, live),
            ("pending", stats.pending_bytes.current, pending),
        ] {
            if found != expected {
                return Err(format!("{what}: {found} by the engine, {expected} here"));
            }
        }
        Ok(())
    }
}
