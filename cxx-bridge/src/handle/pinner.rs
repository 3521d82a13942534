//! Pins and unpins regions within a quota, and claims them towards other processes.
//!
//! A pin is taken from the quota before it begins, and put back when it fails or is unpinned. Pages that
//! the system has set aside do not count, unless the user chose a limit. Regions are whole pages of the machine, and budgets,
//! too, so that the last region of a budget is not refused for a part of a page. Knows neither the engine nor what memory is
//! pinned for.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Instant;

use pinbuddy_core::{Refusal, Region, Took};

use crate::backing::{Control, Device, Memory, Pinned, Source, Unpinned};
use crate::budget::{Budget, Capacity, Quota};
use crate::lock;
use crate::log::{self, Bytes};
use crate::sync::AtomicBool;

/// Pinning so much takes as long as hearing of other processes, 8 to 30 ms, for which shorter pins do not wait.
const LONG: usize = 64 << 20;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Pinner<M> {
    pub(super) memory: M,
    pub(super) capacity: Box<dyn Capacity>,
    /// The limit that the user chose.
    max_mb: Option<usize>,
    /// Decided at the first pin, by what is free then.
    quota: OnceLock<Quota>,
    /// Whether deciding it has begun.
    used: AtomicBool,
}

/// Why nothing was pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) why: Refusal,
    /// The driver's error, if the driver refused.
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
            Unpinned::Refused(words) => Self { why: Refusal::Driver, words },
        }
    }
}

impl<M: Memory> Pinner<M> {
    /// A pinner with nothing pinned; `max_mb` is the limit that the user chose.
    pub(super) fn new(memory: M, capacity: Box<dyn Capacity>, max_mb: Option<usize>) -> Self {
        Self { memory, capacity, max_mb, quota: OnceLock::new(), used: AtomicBool::new(false) }
    }

    /// Pins a fresh region of at least `bytes` bytes, as long as `control` lets it. It is longer where a page is longer than
    /// the engine's unit.
    pub(super) fn pin(&self, bytes: usize, device: Device, control: &dyn Control) -> Result<(Region, Took), Refused> {
        lock::assert_none_held("pinning");
        // Before all else: a child that is made from now on must not hand this out.
        self.used.store(true, Ordering::Relaxed);
        let bytes = self.whole_pages(bytes);
        let pin = |source| {
            let Pinned { base, filling, registering } = self.memory.pin(bytes, device, source, control)?;
            let (size, taken) = (Bytes(bytes as u64), filling + registering);
            log::debug(|| format!("pinned {size} in {taken:.1?}"));
            let took = Took { filling, registering };
            Ok((Region { base, bytes }, took))
        };
        if self.source(bytes) == Source::SetAside {
            match pin(Source::SetAside) {
                Err(Unpinned::Refused(_)) => {}
                pinned => return pinned.map_err(Refused::from),
            }
        }
        self.take_from_quota(bytes)?;
        // One byte: from now on others leave this process its share. The rest is claimed once it is pinned,
        // since others subtract claims from what is free.
        self.capacity.claim(1);
        let pinned = pin(Source::Ordinary);
        match pinned {
            Ok(_) => self.capacity.claim(bytes),
            Err(_) => self.quota().put(bytes),
        }
        self.capacity.unclaim(1);
        pinned.map_err(Refused::from)
    }

    fn whole_pages(&self, bytes: usize) -> usize {
        let whole = bytes.checked_next_multiple_of(self.memory.page());
        whole.unwrap_or(bytes)
    }

    fn take_from_quota(&self, bytes: usize) -> Result<(), Refused> {
        let quota = self.quota_for(bytes);
        // Before the machine's files are read: once the budget is used up, every request comes here.
        if !quota.take(bytes, |taken| self.budget(taken)) {
            return Err(Refusal::Budget.into());
        }
        // A limit that the user chose is followed, whatever the machine has left.
        if self.max_mb.is_none() && !self.capacity.has_room(bytes) {
            quota.put(bytes);
            return Err(Refusal::Machine.into());
        }
        Ok(())
    }

    /// Takes from the quota, and claims, for memory that others pin.
    pub(super) fn take(&self, bytes: usize) -> Result<(), Refused> {
        self.take_from_quota(bytes)?;
        self.capacity.claim(bytes);
        Ok(())
    }

    /// Puts back what `take` took.
    pub(super) fn put(&self, bytes: usize) {
        self.capacity.unclaim(bytes);
        self.quota().put(bytes);
    }

    /// Unpins what `pin` returned, whether the region has the length that was asked for or that was pinned. The error is for
    /// people; the region then stays pinned.
    pub(super) fn unpin(&self, region: Region) -> Result<(), String> {
        let region = Region { bytes: self.whole_pages(region.bytes), ..region };
        lock::assert_none_held("unpinning");
        let start = Instant::now();
        if self.memory.unpin(region)? == Source::Ordinary {
            self.put(region.bytes);
        }
        let bytes = Bytes(region.bytes as u64);
        log::debug(|| format!("unpinned {bytes} in {:.1?}", start.elapsed()));
        Ok(())
    }

    /// How much may still be pinned, in regions of about `bytes` bytes. If that is too little, the budget
    /// may have been decided at a bad time, and is decided again.
    pub(super) fn left(&self, bytes: usize, now: Instant) -> usize {
        let quota = self.quota_for(bytes);
        if quota.left() < bytes {
            quota.refresh(now, |taken| self.budget(taken));
        }
        let left = quota.left();
        let left = left - left % self.memory.page();
        match self.source(bytes) {
            Source::Ordinary => left,
            // A region takes memory from one of the two.
            Source::SetAside => left.max(self.memory.set_aside(bytes)),
        }
    }

    /// How many regions of `bytes` bytes may still be pinned.
    pub(super) fn room_for_regions_of(&self, bytes: usize) -> usize {
        let set_aside = match self.source(bytes) {
            Source::Ordinary => 0,
            Source::SetAside => self.memory.set_aside(bytes),
        };
        let quota = self.quota_for(bytes);
        quota.refresh(Instant::now(), |taken| self.budget(taken));
        (quota.left() / bytes).saturating_add(set_aside / bytes)
    }

    /// The quota, decided at the first call.
    pub(super) fn quota(&self) -> &Quota {
        self.quota_for(0)
    }

    /// The same, for pins of so many bytes: long ones wait until it is known what other processes have.
    fn quota_for(&self, bytes: usize) -> &Quota {
        // Set first: a child of a fork while the budget is being decided would wait for that for ever.
        self.used.store(true, Ordering::Relaxed);
        if self.max_mb.is_none() && bytes >= LONG {
            self.capacity.hear();
        }
        self.quota.get_or_init(|| Quota::new(self.budget(0)))
    }

    /// The budget, if one was decided.
    pub(super) fn decided_budget(&self) -> Option<Budget> {
        let quota = self.quota.get()?;
        quota.refresh(Instant::now(), |taken| self.budget(taken));
        Some(quota.budget())
    }

    /// The latest budget in bytes, if one was decided. Decides nothing.
    pub(super) fn latest_budget(&self) -> Option<usize> {
        Some(self.quota.get()?.budget().bytes)
    }

    /// Whether anything was pinned, or was about to be.
    pub(super) fn was_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Which memory the next region of `bytes` bytes takes.
    fn source(&self, bytes: usize) -> Source {
        if self.max_mb.is_some() { Source::Ordinary } else { self.memory.source(bytes) }
    }

    /// A new decision on the budget, while `taken` of it is taken.
    fn budget(&self, taken: usize) -> Budget {
        let mut budget = self.capacity.budget(self.max_mb, taken);
        budget.bytes -= budget.bytes % self.memory.page();
        budget
    }
}
