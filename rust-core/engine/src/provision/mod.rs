//! The provisioner: decides when memory is pinned, how much, and which idle regions are unpinned.
//!
//! Sans-IO, like the engine that it holds. It leads a request that misses from step to step: release
//! blocks whose events are complete, wait until some moment, pin a region and unpin others first, or
//! leave the request to upstream. It tells a background worker what to pin ahead. The time, what the
//! budget leaves and the outcome of each pin go in; nothing here pins, waits or reads a clock. So the
//! bridge carries the decisions out in a process, and a replay in simulated time.
//!
//! Invariants: a request waits for another's pin once, and for at most half of what its own pin would take; for streams it waits
//! only beside a plan (`patience`); the worker pauses while a request pins. Beyond what the user asked to have ready, no more is
//! pinned than the *allowance*, unless live blocks are so scattered that no region is idle. It is the largest set in use and nearly half of
//! it, or for small sets 64 MiB and a fifth, but no more than a fifth and half a segment; or what stock would have pinned.
//! With exact growth it is the largest set and a twentieth. Sets, and what stock would have pinned, are those of each home,
//! added up.

mod ahead;
mod decay;
mod grow;
mod guard;
mod pace;
mod patience;
mod permits;
mod region;
mod resort;
mod settings;
mod want;
mod warm;
mod work;

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::engine::Engine;
use crate::error::AdoptError;
use crate::handover::{IdleSegment, NewSegment};
use crate::policy::Config;
use crate::units::{Block, GRANULE, Home, MAX_REGION};

use ahead::{Ahead, FIRST};
use decay::Decay;
use guard::Guard;
use pace::{Paces, Who};
use patience::Patience;
use permits::{Permits, Purpose};
use resort::bytes_of;
use warm::Warm;
use work::Worker;

pub use pace::Took;
pub use permits::PermitId;
pub use settings::{Growth, Settings, WarmUp};
pub use want::{Refusal, Want};
pub use warm::Progress;
pub use work::{GoOn, Work};

/// The next step of a request.
#[derive(Debug)]
pub enum Step {
    /// Hand this out.
    Block(Block),
    /// Release blocks whose events are complete, and ask again.
    Reap,
    /// The same after a moment; [`Want::impatient`] if no stream has any.
    Poll,
    /// Do all of the worker's work, and ask again: `BUDDY_WARMUP=sync`.
    WarmUp,
    /// Unpin, then pin, as the permit says; report the outcome.
    Pin(Permit),
    /// Sleep until something changes or the time is over, and ask again.
    Wait {
        /// On the caller's clock; `None` to wait for a change only.
        until: Option<Duration>,
    },
    /// Upstream serves it.
    PassThrough {
        /// Idle regions, the caller's now: to be unpinned first, since upstream will pin as much.
        unpin: Vec<IdleSegment>,
        /// Why the engine does not serve a request that it could have served.
        why: Option<Refusal>,
    },
}

/// A grow permit: the right to pin one region, outside every lock. It ends with
/// [`Provisioner::pinned`] or [`Provisioner::refused`].
#[derive(Debug)]
pub struct Permit {
    /// Names it when it ends.
    pub id: PermitId,
    /// Length of the region, in bytes; a multiple of [`crate::GRANULE`].
    pub bytes: usize,
    /// Where it is to lie. What is pinned counts as lying there.
    pub home: Home,
    /// Idle regions, the caller's now: to be unpinned first.
    pub unpin: Vec<IdleSegment>,
    /// Whether the region is to be the working-set region.
    pub renews: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Provisioner {
    settings: Settings,
    engine: Engine,
    permits: Permits,
    paces: Paces,
    patience: Patience,
    ahead: Ahead,
    guard: Guard,
    warm: Warm,
    worker: Worker,
    decay: Decay,
    /// How often the cache was cleared.
    clears: u32,
    closed: bool,
}

impl Provisioner {
    /// A provisioner with nothing pinned.
    pub fn new(mut settings: Settings) -> Self {
        // As the engine counts: a segment is whole granules.
        let granules = settings.segment_bytes.clamp(1, MAX_REGION).div_ceil(GRANULE);
        settings.segment_bytes = granules * GRANULE;
        let engine =
            Engine::new(Config { segment_bytes: settings.segment_bytes, threshold_bytes: settings.threshold_bytes });
        let engine = match settings.growth {
            Growth::Segment => engine,
            Growth::Exact => engine.renewing(),
        };
        Self {
            warm: Warm::new(&settings),
            worker: Worker::default(),
            decay: Decay::default(),
            guard: Guard::new(settings.growth),
            settings,
            engine,
            permits: Permits::default(),
            paces: Paces::default(),
            patience: Patience::default(),
            ahead: Ahead::default(),
            clears: 0,
            closed: false,
        }
    }

    /// The same, whose engine cuts small and large blocks from the same segments. Where the warm-up pins all that is
    /// needed, sizes that differ from phase to phase are no reason to replace it.
    #[must_use]
    pub fn mixing(self) -> Self {
        let engine = self.engine.mixing();
        let is_amount = self.settings.count.is_some_and(|count| count > 0);
        Self { engine: if is_amount { engine.without_phases() } else { engine }, ..self }
    }

    /// The same, whose requests rather wait for streams than pin: a plan's, where all that is needed is pinned.
    #[must_use]
    pub fn patient(mut self) -> Self {
        self.patience.begin();
        self
    }

    /// A region was pinned that is not the engine's.
    pub fn pinned_beside(&mut self, bytes: usize, took: Took) {
        self.paces.learn(Who::Worker, bytes, took, true);
    }

    /// A request that waited for streams has its block.
    pub fn was_worth_waiting(&mut self) {
        self.patience.was_worth_it();
    }

    /// Whether the first step of a request may be a pin; else it needs neither the time nor what the budget leaves.
    #[inline]
    pub fn may_pin_at_first(&self) -> bool {
        self.engine.is_renewing()
    }

    /// Whether requests that miss are left to upstream, since too much was pinned anew.
    pub fn is_yielding(&self) -> bool {
        self.guard.is_yielding()
    }

    /// The engine, with all that is pinned.
    #[inline]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The engine, for calls that pin nothing: releases, blocks beside cached ones, statistics.
    #[inline]
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// The region of permit `id` is pinned: the engine adopts it. Returns the block of the request that
    /// the region was pinned for.
    ///
    /// # Errors
    ///
    /// [`AdoptError`] if the engine does not adopt it. It is then still the caller's.
    pub fn pinned(&mut self, id: PermitId, mut segment: NewSegment, took: Took) -> Result<Option<Block>, AdoptError> {
        let bytes = segment.0.region().bytes;
        let permit = self.permits.end(id);
        if let Some(permit) = &permit {
            segment = segment.at(permit.home);
            self.engine.turn_to(permit.home);
            self.guard.count(bytes);
            self.paces.learn(permit.who, bytes, took, permit.alone);
        }
        let working_set = permit.as_ref().is_some_and(|it| it.working_set);
        let id = if working_set { self.engine.adopt_working_set(segment)? } else { self.engine.adopt(segment)? };
        let Some(permit) = permit else {
            return Ok(None);
        };
        match permit.who {
            Who::Request => {
                self.warm.count_request(permit.request, &self.settings);
                Ok(self.engine.request_anywhere(permit.request))
            }
            Who::Worker => {
                if permit.clears == self.clears {
                    self.warm.count_segment(bytes, &self.settings);
                } else {
                    self.worker.cleared.push((id, bytes));
                }
                Ok(None)
            }
        }
    }

    /// Nothing was pinned for permit `id`. For a request, [`Want::refused`] must be called as well.
    pub fn refused(&mut self, id: PermitId, refusal: Refusal) {
        let Some(permit) = self.permits.end(id) else {
            return;
        };
        if permit.working_set {
            self.engine.working_set_refused();
        }
        if permit.who == Who::Worker {
            self.warm.refused(refusal);
        }
    }

    /// `empty_cache`: returns all that is idle, to be unpinned. Of the segments that the user asked to
    /// have ready, as many are pinned again when demand shows.
    pub fn clear(&mut self) -> Vec<IdleSegment> {
        let mut idle = self.engine.take_idle(usize::MAX);
        let bytes = bytes_of(&idle);
        self.warm.clear(bytes, &self.settings);
        self.ahead.clear();
        self.guard.clear(self.engine.rival());
        self.engine.cleared();
        self.clears = self.clears.wrapping_add(1);
        idle.extend(self.engine.take_leaving(usize::MAX, usize::MAX));
        idle
    }

    /// PyTorch itself could not pin `bytes`, while the machine has `left`: returns all idle regions, to
    /// be unpinned; none where all of them, and those that the worker is unpinning, would not be enough.
    pub fn give_way(&mut self, bytes: usize, left: Option<usize>) -> Vec<IdleSegment> {
        let idle = self.engine.idle_region_bytes() + self.engine.leaving_bytes();
        let idle = idle + self.unpinning();
        if left.is_some_and(|left| left.saturating_add(idle) < bytes) {
            return Vec::new();
        }
        self.warm.refused(Refusal::Driver);
        let mut idle = self.engine.take_idle(usize::MAX);
        idle.extend(self.engine.take_leaving(usize::MAX, usize::MAX));
        idle
    }

    /// The process ends: nothing more is pinned.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether a pin is under way.
    pub fn is_pinning(&self) -> bool {
        self.permits.bytes() > 0
    }

    /// Bytes pinned or being pinned, without regions that were let go.
    fn held(&self) -> usize {
        self.engine.pinned_bytes() - self.engine.leaving_bytes() + self.permits.bytes()
    }

    /// The most that may be pinned with a request of `bytes`.
    fn allowance(&self, bytes: usize) -> usize {
        let set = self.engine.set_with(bytes);
        let told = self.warm.told_bytes(&self.settings);
        if self.settings.growth == Growth::Exact {
            return (set + set / 20).max(told);
        }
        let more = FIRST.max(set / 4).min(self.settings.segment_bytes / 2);
        let by_need = set + set / 5 + more;
        by_need.max(told).max(self.engine.rival_bytes(bytes))
    }

    fn permit(&mut self, bytes: usize, purpose: Purpose, unpin: Vec<IdleSegment>, now: Duration) -> Permit {
        // A budget or an allowance may end within a granule.
        let bytes = bytes / GRANULE * GRANULE;
        let id = self.permits.begin(bytes, purpose, now, self.clears);
        Permit { id, bytes, home: purpose.home, unpin, renews: purpose.working_set }
    }
}
