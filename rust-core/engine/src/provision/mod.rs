//! The provisioner: decides when memory is pinned, how much, and what is given back.
//!
//! Sans-IO, as the engine that it holds. A request that finds no room is led from step to step:
//! have completed blocks released, wait (and until when at the latest), pin so much and unpin these
//! first, or leave it to upstream. A worker behind the program is told what to pin ahead. The clock,
//! what the budget leaves and the outcome of each pin go in; nothing here pins, waits, or reads a
//! clock. So the bridge carries it out in a process, and a replay in simulated time.
//!
//! Invariants: a request waits once, and for no longer than half of what its own pin would take; the
//! worker is told to stand still while a request pins; beyond what the user asked to have ready, no
//! more is pinned than the *allowance*, the largest set in use and a fifth, and half a segment,
//! unless what lives lies so scattered that nothing can be given back.

mod ahead;
mod guard;
mod orders;
mod pace;
mod region;
mod resort;
mod room;
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
use crate::units::Block;

use ahead::Ahead;
use guard::Guard;
use orders::{Orders, Purpose};
use pace::{Paces, Who};
use warm::Warm;
use work::Worker;

pub use orders::Ticket;
pub use pace::Took;
pub use settings::{Growth, Settings, WarmUp};
pub use want::{Refusal, Want};
pub use warm::Progress;
pub use work::{GoOn, Work};

/// The next step of a request.
#[derive(Debug)]
pub enum Step {
    /// Hand this out.
    Block(Block),
    /// Have blocks whose events are complete released, and ask again.
    Reap,
    /// Do the worker's work, all of it, and ask again: `BUDDY_WARMUP=sync`.
    WarmUp,
    /// Unpin the first, pin the second, and say what came of it.
    Pin(Order),
    /// Sleep until something changes, at the latest until then, and ask again.
    Wait {
        /// On the caller's clock; `None` where only a change is of use.
        until: Option<Duration>,
    },
    /// Upstream serves it. Unpin these first, since it will pin as much.
    PassThrough {
        /// Idle regions, the caller's now.
        unpin: Vec<IdleSegment>,
        /// What was in the way, where the engine would have served it.
        why: Option<Refusal>,
    },
}

/// A pin to be made, outside every lock.
#[derive(Debug)]
pub struct Order {
    /// Its name, for [`Provisioner::pinned`] or [`Provisioner::refused`].
    pub ticket: Ticket,
    /// Length of the region, in bytes; a multiple of [`crate::GRANULE`].
    pub bytes: usize,
    /// To be unpinned first: idle regions, the caller's now.
    pub unpin: Vec<IdleSegment>,
    /// Whether it is the region that is to serve a program's rounds from now on.
    pub renews: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Provisioner {
    settings: Settings,
    engine: Engine,
    orders: Orders,
    paces: Paces,
    ahead: Ahead,
    guard: Guard,
    warm: Warm,
    worker: Worker,
    /// How often the cache was cleared.
    clears: u32,
    closed: bool,
}

impl Provisioner {
    /// Nothing pinned.
    pub fn new(settings: Settings) -> Self {
        let engine = Engine::new(Config {
            segment_bytes: settings.segment_bytes,
            threshold_bytes: settings.threshold_bytes,
        });
        let engine = match settings.growth {
            Growth::Segment => engine,
            Growth::Exact => engine.renewing(),
        };
        Self {
            warm: Warm::new(&settings),
            worker: Worker::default(),
            guard: Guard::new(settings.growth),
            settings,
            engine,
            orders: Orders::default(),
            paces: Paces::default(),
            ahead: Ahead::default(),
            clears: 0,
            closed: false,
        }
    }

    /// What is pinned and who has it.
    #[inline]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// For what needs no memory: releases, blocks beside cached ones, statistics.
    #[inline]
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// The region of `ticket` is pinned: the engine adopts it, and the request that it was made for
    /// has its block.
    ///
    /// # Errors
    ///
    /// [`AdoptError`] where the engine does not take it. It is then still the caller's.
    pub fn pinned(
        &mut self,
        ticket: Ticket,
        segment: NewSegment,
        took: Took,
    ) -> Result<Option<Block>, AdoptError> {
        let bytes = segment.0.region().bytes;
        let order = self.orders.end(ticket);
        if let Some(order) = &order {
            self.guard.count(bytes);
            self.paces.learn(order.who, bytes, took, order.alone);
        }
        let home = order.as_ref().is_some_and(|it| it.home);
        let id = if home {
            self.engine.adopt_home(segment)?
        } else {
            self.engine.adopt(segment)?
        };
        let Some(order) = order else {
            return Ok(None);
        };
        match order.who {
            Who::Request => {
                self.warm.count_request(order.request, &self.settings);
                Ok(self.engine.request_anywhere(order.request))
            }
            Who::Worker => {
                self.warm.count_segment(bytes, &self.settings);
                if order.clears != self.clears {
                    self.worker.stale.push(id);
                }
                Ok(None)
            }
        }
    }

    /// Nothing was pinned for `ticket`. For a request [`Want::refused`] has to know as well.
    pub fn refused(&mut self, ticket: Ticket, refusal: Refusal) {
        let Some(order) = self.orders.end(ticket) else {
            return;
        };
        if order.home {
            self.engine.home_refused();
        }
        if order.who == Who::Worker {
            self.warm.refused(refusal);
        }
    }

    /// `empty_cache`: all that is idle, to be unpinned. What segments held comes back when demand
    /// shows, and no more of it than the user asked to have ready.
    pub fn clear(&mut self) -> Vec<IdleSegment> {
        let mut idle = self.engine.take_idle(usize::MAX);
        let bytes: usize = idle.iter().map(|it| it.region().bytes).sum();
        self.warm.clear(bytes, &self.settings);
        self.ahead.clear();
        self.guard.clear(self.engine.rival());
        self.engine.forget_largest_set();
        self.clears = self.clears.wrapping_add(1);
        idle.extend(self.engine.take_leaving(usize::MAX, usize::MAX));
        idle
    }

    /// PyTorch could not pin `bytes` of its own, where the machine leaves `left`: what of the idle
    /// memory is to make way. Nothing where all of it would not be enough.
    pub fn give_way(&mut self, bytes: usize, left: Option<usize>) -> Vec<IdleSegment> {
        let idle = self.engine.idle_region_bytes() + self.engine.leaving_bytes();
        if left.is_some_and(|left| left.saturating_add(idle) < bytes) {
            return Vec::new();
        }
        self.warm.refused(Refusal::Driver);
        let mut idle = self.engine.take_idle(usize::MAX);
        idle.extend(self.engine.take_leaving(usize::MAX, usize::MAX));
        idle
    }

    /// Nothing more is pinned: the process ends.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether a pin is under way.
    pub fn is_pinning(&self) -> bool {
        self.orders.bytes() > 0
    }

    /// Pinned, or about to be, but for what was let go.
    fn held(&self) -> usize {
        self.engine.pinned_bytes() - self.engine.leaving_bytes() + self.orders.bytes()
    }

    /// The most that is to be pinned, where a request of `bytes` comes.
    fn allowance(&self, bytes: usize) -> usize {
        let set = self.engine.largest_set().max(self.engine.in_use() + bytes);
        let by_need = set + set / 5 + self.settings.segment_bytes / 2;
        by_need
            .max(self.warm.told_bytes(&self.settings))
            .max(self.engine.rival_bytes(bytes))
    }

    fn order(
        &mut self,
        bytes: usize,
        purpose: Purpose,
        unpin: Vec<IdleSegment>,
        now: Duration,
    ) -> Order {
        let ticket = self.orders.begin(bytes, purpose, now, self.clears);
        Order {
            ticket,
            bytes,
            unpin,
            renews: purpose.home,
        }
    }
}
