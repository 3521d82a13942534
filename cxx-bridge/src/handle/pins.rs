//! Pinning and unpinning for the engine, always outside its lock.
//!
//! Every pin is taken out of the budget first and put back when it ends. Knows neither why memory
//! is pinned nor who waits for it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pinbuddy_core::{AdoptError, Engine, NewSegment, Region, SegmentId, SegmentView};

use super::{Grant, Handle, grant};
use crate::backing::{Backing, Device, Source};
use crate::budget::Purse;
use crate::config::MIB;
use crate::lock;
use crate::log::{self, Bytes};

/// Why nothing was pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The budget has not so much left.
    Budget,
    /// The machine has not twice as much left.
    Full,
    /// The driver's words.
    Driver(String),
    /// The engine was retired meanwhile.
    Off,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget => f.write_str("the budget is used up"),
            Self::Full => f.write_str("it is more than half of what the machine has left"),
            Self::Driver(why) => f.write_str(why),
            Self::Off => f.write_str("the engine is retired"),
        }
    }
}

/// How this machine pins, from the pins made so far.
#[derive(Debug, Default)]
pub(super) struct Speed {
    /// Nanoseconds for a MiB; 0 before the first pin.
    pace: AtomicU64,
    /// Whether a pin was seen to wait for another one.
    one_at_a_time: AtomicBool,
}

impl Speed {
    fn learn(&self, bytes: usize, taken: Duration) {
        let mib = bytes.div_ceil(MIB) as u64;
        let pace = u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX) / mib.max(1);
        let old = self.pace.load(Ordering::Relaxed);
        // Half of what is new: one pin in contention does not outweigh all others.
        let new = if old == 0 { pace } else { old / 2 + pace / 2 };
        self.pace.store(new.max(1), Ordering::Relaxed);
    }

    /// A pin that should have taken `expected` took `taken`, beside one with `left` to go.
    pub(super) fn learn_beside(&self, expected: Duration, taken: Duration, left: Duration) {
        // Clear cases only: contention alone makes a pin a few times slower.
        if left > 4 * expected && taken > left / 2 + expected {
            self.one_at_a_time.store(true, Ordering::Relaxed);
        }
    }

    /// Whether pinning beside another pin is known to gain nothing.
    pub(super) fn one_at_a_time(&self) -> bool {
        self.one_at_a_time.load(Ordering::Relaxed)
    }

    /// How long a pin of `bytes` will take, if that is known.
    pub(super) fn estimate(&self, bytes: usize) -> Option<Duration> {
        let pace = self.pace.load(Ordering::Relaxed);
        let mib = bytes.div_ceil(MIB) as u64;
        (pace > 0).then(|| Duration::from_nanos(pace.saturating_mul(mib)))
    }
}

/// How the engine takes a region.
type Adopt = fn(&mut Engine, NewSegment) -> Result<SegmentId, AdoptError>;

/// A block for a request for which a region was pinned just now. What else the engine has to say
/// can wait.
fn serve(request: usize) -> impl FnOnce(&mut Engine) -> Option<Grant> {
    move |engine| {
        let block = engine.request_anywhere(request)?;
        Some(grant(engine, block))
    }
}

impl<B: Backing> Handle<B> {
    /// Pins `bytes` bytes within the budget and has the engine adopt them.
    pub(super) fn pin(&self, bytes: usize, device: Device) -> Result<(), Refusal> {
        self.pin_then(bytes, device, Engine::adopt, |_| Some(()))
    }

    /// As [`Self::pin`], and serves a request of `request` bytes before any other thread can: the
    /// region holds it.
    pub(super) fn pin_for(
        &self,
        request: usize,
        bytes: usize,
        device: Device,
    ) -> Result<Grant, Refusal> {
        self.pin_then(bytes, device, Engine::adopt, serve(request))
    }

    /// The same for the region that is to serve all that the program does.
    pub(super) fn pin_home(
        &self,
        request: usize,
        bytes: usize,
        device: Device,
    ) -> Result<Grant, Refusal> {
        self.pin_then(bytes, device, Engine::adopt_home, serve(request))
    }

    /// Pins, adopts, and runs `then` under the same lock.
    fn pin_then<T>(
        &self,
        bytes: usize,
        device: Device,
        adopt: Adopt,
        then: impl FnOnce(&mut Engine) -> Option<T>,
    ) -> Result<T, Refusal> {
        lock::assert_none_held("pinning");
        let start = Instant::now();
        if self.source(bytes) == Source::SetAside
            && let Ok(base) = self.backing.pin(bytes, device, Source::SetAside)
        {
            return self.pinned(Region { base, bytes }, start, adopt, then);
        }
        let purse = self.purse();
        // Before the machine is asked: that reads files, and a budget that is used up is met by
        // every request.
        if !purse.take(bytes) {
            return Err(Refusal::Budget);
        }
        // A limit that the user chose is the user's affair, whatever else the machine holds.
        if !(self.has_chosen_limit() || self.backing.has_room(bytes)) {
            purse.put(bytes);
            return Err(Refusal::Full);
        }
        let pinned = self.backing.pin(bytes, device, Source::Ordinary);
        let base = pinned.map_err(|why| {
            purse.put(bytes);
            Refusal::Driver(why)
        })?;
        self.pinned(Region { base, bytes }, start, adopt, then)
    }

    fn pinned<T>(
        &self,
        region: Region,
        start: Instant,
        adopt: Adopt,
        then: impl FnOnce(&mut Engine) -> Option<T>,
    ) -> Result<T, Refusal> {
        let taken = start.elapsed();
        self.speed.learn(region.bytes, taken);
        log::debug(|| format!("pinned {} in {taken:.1?}", Bytes(region.bytes as u64)));
        self.adopt(region, adopt, then)
    }

    fn has_chosen_limit(&self) -> bool {
        self.config.max_mb.value.is_some()
    }

    /// Whose memory the next region of `bytes` bytes takes. What is set aside is no part of the
    /// budget, unless the user chose one.
    fn source(&self, bytes: usize) -> Source {
        if self.has_chosen_limit() {
            Source::Ordinary
        } else {
            self.backing.source(bytes)
        }
    }

    /// How many segments there is memory for.
    pub(super) fn room_for_segments(&self) -> usize {
        let bytes = self.config.block_bytes();
        let set_aside = if self.has_chosen_limit() {
            0
        } else {
            self.backing.set_aside(bytes)
        };
        (self.purse().left() / bytes).saturating_add(set_aside / bytes)
    }

    fn adopt<T>(
        &self,
        region: Region,
        adopt: Adopt,
        then: impl FnOnce(&mut Engine) -> Option<T>,
    ) -> Result<T, Refusal> {
        let adopted = || -> Option<Result<Option<T>, AdoptError>> {
            // The segment's bookkeeping is made here, outside the lock.
            let segment = match NewSegment::new(region) {
                Ok(segment) => segment,
                Err(why) => return Some(Err(why)),
            };
            let mut engine = self.engine()?;
            Some(adopt(&mut engine, segment).map(|_| then(&mut engine)))
        };
        match adopted() {
            Some(Ok(Some(value))) => return Ok(value),
            Some(Ok(None)) => {
                // The region is the engine's by now, and stays pinned.
                self.retire("nothing fits in what was pinned to fit");
                return Err(Refusal::Off);
            }
            Some(Err(why)) => self.retire(&why.to_string()),
            None => {}
        }
        self.unpin(region);
        Err(Refusal::Off)
    }

    pub(super) fn unpin(&self, region: Region) {
        lock::assert_none_held("unpinning");
        let start = Instant::now();
        let result = self.backing.unpin(region);
        let (bytes, base) = (Bytes(region.bytes as u64), region.base);
        match result {
            Ok(source) => {
                if source == Source::Ordinary {
                    self.purse().put(region.bytes);
                }
                log::debug(|| format!("unpinned {bytes} in {:.1?}", start.elapsed()));
            }
            Err(why) => log::warn(|| format!("could not unpin {bytes} at {base:#x}: {why}")),
        }
    }

    /// Unpins wholly idle segments and cached regions until so many bytes are free; how many bytes
    /// were in segments and how many in all.
    pub(super) fn give_back(&self, at_least: usize) -> (usize, usize) {
        let idle = match self.engine() {
            Some(mut engine) => engine.take_idle(at_least),
            None => Vec::new(),
        };
        let (mut split, mut all) = (0, 0);
        for segment in idle {
            let region = segment.region();
            self.unpin(region);
            all += region.bytes;
            if !segment.is_dedicated() {
                split += region.bytes;
            }
        }
        (split, all)
    }

    /// What `give_back` could free.
    pub(super) fn idle_bytes(&self) -> usize {
        let Some(engine) = self.engine() else {
            return 0;
        };
        let idle = engine.segments().filter(SegmentView::is_idle);
        idle.map(|segment| segment.bytes).sum()
    }

    /// Unpins all that is idle; what segments held is pinned again by the next warm-up.
    pub(super) fn give_back_and_owe(&self) {
        let (split, all) = self.give_back(usize::MAX);
        // Who wants no blocks ahead gets none later either.
        if self.config.block_count.value > 0 {
            self.warm_up.owe(split / self.config.block_bytes());
        }
        if all > 0 {
            log::info(|| format!("cleared: {} given back", Bytes(all as u64)));
        }
    }

    /// What may be pinned: decided at the first call.
    pub(super) fn purse(&self) -> &Purse {
        self.purse
            .get_or_init(|| Purse::new(self.backing.budget(self.config.max_mb.value)))
    }
}
