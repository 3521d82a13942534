//! Pins and unpins regions, within a quota, and has other processes told of them.
//!
//! Every pin is taken out of the quota first and put back when it ends. What the system has set aside is no
//! part of it, unless the user chose a limit. Knows neither the engine nor what is pinned for what.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pinbuddy_core::{Refusal, Region, Took};

use crate::backing::{Control, Device, Memory, Pinned, Source, Unpinned};
use crate::budget::{Budget, Capacity, Quota};
use crate::lock;
use crate::log::{self, Bytes};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Pinner<M> {
    pub(super) memory: M,
    capacity: Box<dyn Capacity>,
    /// The limit that the user chose.
    max_mb: Option<usize>,
    /// Decided when something is first pinned: what is free then is what counts.
    quota: OnceLock<Quota>,
    /// That was done, or begun.
    used: AtomicBool,
}

/// Why nothing was pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) why: Refusal,
    /// The driver's words, where it was the driver.
    words: String,
}

impl Refused {
    /// Why, for people.
    pub(super) fn reason(&self) -> &str {
        match self.why {
            Refusal::Budget => "the budget is used up",
            Refusal::Machine => "it is more than half of what the machine has left",
            Refusal::Driver => &self.words,
            Refusal::Stopped => "it was stopped",
        }
    }
}

impl From<Refusal> for Refused {
    fn from(why: Refusal) -> Self {
        let words = String::new();
        Self { why, words }
    }
}

impl From<Unpinned> for Refused {
    fn from(unpinned: Unpinned) -> Self {
        match unpinned {
            Unpinned::Stopped => Refusal::Stopped.into(),
            Unpinned::Refused(words) => Self {
                why: Refusal::Driver,
                words,
            },
        }
    }
}

impl<M: Memory> Pinner<M> {
    /// With nothing pinned; `max_mb` is the limit that the user chose.
    pub(super) fn new(memory: M, capacity: Box<dyn Capacity>, max_mb: Option<usize>) -> Self {
        Self {
            memory,
            capacity,
            max_mb,
            quota: OnceLock::new(),
            used: AtomicBool::new(false),
        }
    }

    /// Pins a fresh region, as long as `control` lets it.
    pub(super) fn pin(
        &self,
        bytes: usize,
        device: Device,
        control: &dyn Control,
    ) -> Result<(Region, Took), Refused> {
        lock::assert_none_held("pinning");
        let pin = |source| {
            let Pinned {
                base,
                filling,
                registering,
            } = self.memory.pin(bytes, device, source, control)?;
            let (size, taken) = (Bytes(bytes as u64), filling + registering);
            log::debug(|| format!("pinned {size} in {taken:.1?}"));
            let took = Took {
                filling,
                registering,
            };
            Ok((Region { base, bytes }, took))
        };
        if self.source(bytes) == Source::SetAside {
            match pin(Source::SetAside) {
                Err(Unpinned::Refused(_)) => {}
                pinned => return pinned.map_err(Refused::from),
            }
        }
        let quota = self.quota();
        // Before the machine is asked: that reads files, and a budget that is used up is met by
        // every request.
        if !quota.take(bytes, |taken| self.budget(taken)) {
            return Err(Refusal::Budget.into());
        }
        // A limit that the user chose is the user's affair, whatever else the machine holds.
        if self.max_mb.is_none() && !self.capacity.has_room(bytes) {
            quota.put(bytes);
            return Err(Refusal::Machine.into());
        }
        // Others leave this process its part from now on, and add up only what is gone from the machine.
        self.capacity.claim(1);
        let pinned = pin(Source::Ordinary);
        match pinned {
            Ok(_) => self.capacity.claim(bytes),
            Err(_) => quota.put(bytes),
        }
        self.capacity.unclaim(1);
        pinned.map_err(Refused::from)
    }

    /// Gives back what `pin` returned; the error is for people, and what it is about stays pinned.
    pub(super) fn unpin(&self, region: Region) -> Result<(), String> {
        lock::assert_none_held("unpinning");
        let start = Instant::now();
        if self.memory.unpin(region)? == Source::Ordinary {
            self.capacity.unclaim(region.bytes);
            self.quota().put(region.bytes);
        }
        let bytes = Bytes(region.bytes as u64);
        log::debug(|| format!("unpinned {bytes} in {:.1?}", start.elapsed()));
        Ok(())
    }

    /// How much may still be pinned, in regions of about `bytes` bytes. Where that is too little, the
    /// budget may have been decided in a bad moment, and is decided again.
    pub(super) fn left(&self, bytes: usize, now: Instant) -> usize {
        let quota = self.quota();
        if quota.left() < bytes {
            quota.refresh(now, |taken| self.budget(taken));
        }
        let left = quota.left();
        match self.source(bytes) {
            Source::Ordinary => left,
            // One region takes the one or the other.
            Source::SetAside => left.max(self.memory.set_aside(bytes)),
        }
    }

    /// How many regions of `bytes` bytes there is memory for.
    pub(super) fn room_for_regions_of(&self, bytes: usize) -> usize {
        let set_aside = match self.source(bytes) {
            Source::Ordinary => 0,
            Source::SetAside => self.memory.set_aside(bytes),
        };
        let quota = self.quota();
        quota.refresh(Instant::now(), |taken| self.budget(taken));
        (quota.left() / bytes).saturating_add(set_aside / bytes)
    }

    /// How much memory the machine and the control group leave now; nothing where that is not known.
    pub(super) fn free(&self) -> Option<usize> {
        self.capacity.free()
    }

    /// What may be pinned: decided at the first call, which comes before the first pin.
    pub(super) fn quota(&self) -> &Quota {
        // First: a child that is forked while the budget is decided would wait for that for ever.
        self.used.store(true, Ordering::Relaxed);
        self.quota.get_or_init(|| Quota::new(self.budget(0)))
    }

    /// The budget, where one was decided.
    pub(super) fn decided_budget(&self) -> Option<Budget> {
        let quota = self.quota.get()?;
        quota.refresh(Instant::now(), |taken| self.budget(taken));
        Some(quota.budget())
    }

    /// Whether something was pinned, or was about to be.
    pub(super) fn was_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Whose memory the next region of `bytes` bytes takes.
    fn source(&self, bytes: usize) -> Source {
        if self.max_mb.is_some() {
            Source::Ordinary
        } else {
            self.memory.source(bytes)
        }
    }

    /// The budget where so much of it is taken, by a new decision.
    fn budget(&self, taken: usize) -> Budget {
        self.capacity.budget(self.max_mb, taken)
    }
}
