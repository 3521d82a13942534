//! The handle of a process's pinned memory: leads the allocator's calls to the parts that carry them out.
//!
//! The provisioner, in its `cell`, decides what is pinned, when and how much; the `pinner` pins. The
//! handle wires the two, and knows nothing of PyTorch except how to have events queried. Calls that need
//! no memory are in this file; requests in `requests`, the worker in `worker`, permits in `permits`,
//! pins before the first request in `early`, nodes of memory in `homes`, unpinning in `clear` and `idle`,
//! the end of the process and its children in `ends`.
//!
//! Invariants: the lock is never held while memory is pinned, unpinned or waited for (I5); every permit is
//! ended, after a panic too, so that no thread waits for a pin that does not exist; blocks that are live
//! when the engine retires stay valid.

mod cell;
mod clear;
mod early;
mod ends;
mod homes;
mod idle;
mod in_place;
mod live;
mod notices;
mod permits;
mod pinner;
mod planned;
mod refused;
mod report;
mod requests;
mod worker;

use std::sync::OnceLock;
use std::time::Instant;

use pinbuddy_core::{Block, Cached, Home, Provisioner, Region, SegmentId, Settings, WarmUp};
use pinbuddy_slots::Slots;

use crate::backing::{Completions, Memory};
use crate::budget::Capacity;
use crate::config::Config;
use crate::lock::Lock;
use crate::sync::AtomicBool;
use cell::EngineCell;
use live::Waits;
use notices::Notices;
use pinner::Pinner;
use planned::Planned;

/// A block that serves a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Where the block starts.
    pub address: usize,
    /// The engine's id of the block.
    pub block: Block,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Handle<M> {
    config: Config,
    /// What the provisioner was set to: as the configuration says, or as a plan asks.
    settings: Settings,
    cell: EngineCell,
    pinner: Pinner<M>,
    completions: Box<dyn Completions>,
    notices: Notices,
    waits: Waits,
    /// What the driver would not unpin: still pinned, the engine's no more, and tried again when the
    /// cache is emptied.
    refused: Lock<Vec<Region>>,
    /// Where a plan says what is needed.
    planned: Option<Planned>,
    /// Whether there is a plan, of slots or of an amount alone.
    is_planned: bool,
    /// Whether a thread waits to pin what the plan asks for, or has.
    early: AtomicBool,
    /// Whether a thread looks for idle memory.
    watches: AtomicBool,
    /// Until when the end of the process waits for pins: set once, since it is said twice.
    ends: OnceLock<Instant>,
    /// Whether the first step of a request may be a pin.
    may_pin_at_first: bool,
    /// Whether memory has several homes. A plan's has one: its regions lie where the device was that was in use when
    /// they were pinned.
    is_divided: bool,
}

impl<M: Memory> Handle<M> {
    /// A handle with these settings and nothing pinned. `planned`: for a program that has run before, places for its requests, and
    /// the engine's settings beside them.
    pub fn new(
        config: Config,
        planned: Option<(Settings, Slots)>,
        memory: M,
        capacity: Box<dyn Capacity>,
        completions: Box<dyn Completions>,
    ) -> Self {
        let (settings, slots) = match planned {
            Some((settings, slots)) => (settings, Some(slots)),
            None => (config.of_the_provisioner(), None),
        };
        let is_planned = slots.is_some();
        let waits = settings.warm_up != WarmUp::Background;
        let slots = slots.filter(|it| !it.is_empty());
        let mut provisioner = Provisioner::new(settings.clone());
        if is_planned {
            provisioner = provisioner.mixing().patient();
        }
        Self {
            planned: slots.map(|it| Planned::new(it, waits)),
            is_planned,
            is_divided: !is_planned && memory.homes() > 1,
            early: AtomicBool::new(false),
            watches: AtomicBool::new(false),
            ends: OnceLock::new(),
            may_pin_at_first: provisioner.may_pin_at_first(),
            cell: EngineCell::new(provisioner),
            settings,
            pinner: Pinner::new(memory, capacity, config.max_mb.value),
            completions,
            notices: Notices::default(),
            waits: Waits::default(),
            refused: Lock::default(),
            config,
        }
    }

    /// Has the next request panic in the engine, as a defect of ours would: for tests, in a debug
    /// build only.
    #[cfg(debug_assertions)]
    pub fn break_down(&self) {
        self.cell.break_down();
    }

    /// The first thing that the engine's audit finds wrong, for people; empty where there is none: for
    /// tests, in a debug build only.
    #[cfg(debug_assertions)]
    pub fn audit(&self) -> String {
        let found = |provisioner: &Provisioner| provisioner.engine().audit().err();
        let violation = self.cell.provisioner().and_then(|it| found(&it));
        violation.map_or_else(String::new, |it| it.to_string())
    }

    /// A block of at least `bytes` bytes for a request of this home, while the allocator has `cached` of it in its
    /// caches. On `None` the allocator releases its cached blocks and calls [`Self::request_at`].
    pub fn request_beside(&self, bytes: usize, home: Home, cached: Cached) -> Option<Grant> {
        self.cell.guarded(|| {
            if let Some(grant) = self.request_room(bytes) {
                return Some(grant);
            }
            let mut provisioner = self.cell.provisioner_to_ask()?;
            provisioner.engine_mut().turn_to(home);
            let block = provisioner.engine_mut().request_beside(bytes, cached)?;
            Some(grant(&provisioner, block))
        })
    }

    /// The caches are flushed: counts requests that cached blocks have served since they were last, and the bytes of those blocks.
    pub fn reused(&self, blocks: usize, bytes: usize) {
        self.cell.guarded(|| {
            let mut provisioner = self.cell.provisioner()?;
            provisioner.engine_mut().reused(blocks as u64, bytes as u64);
            Some(())
        });
    }

    /// The block's events have completed, and the allocator caches it.
    pub fn cache(&self, block: Block) {
        if self.sets_planned_pending(block, false) {
            return;
        }
        self.cell.unless_misused(|provisioner| provisioner.engine_mut().cache(block));
    }

    /// The user freed the block, and events on it are outstanding.
    pub fn defer(&self, block: Block) {
        if self.sets_planned_pending(block, true) {
            return;
        }
        self.cell.unless_misused(|provisioner| provisioner.engine_mut().defer(block));
    }

    /// The block is free: its user is done and so is every event on it.
    #[inline]
    pub fn release(&self, block: Block) {
        if self.releases_planned(block) {
            return;
        }
        self.cell.unless_misused(|provisioner| provisioner.engine_mut().release(block));
    }

    /// How many slots a plan has; 0 without one.
    pub fn slots(&self) -> usize {
        self.planned.as_ref().map_or(0, Planned::len)
    }

    /// The slot in use that begins at this address.
    pub fn slot_at(&self, address: usize) -> Option<u32> {
        let planned = self.planned.as_ref().filter(|_| !self.cell.is_child())?;
        self.cell.guarded(|| planned.slot_at(address))
    }

    /// An iteration of this thread's, whose number is small, is over.
    pub fn iteration(&self, thread: u32) {
        self.tell_the_plan(|planned| planned.iteration(thread));
    }

    /// This thread has ended: its number may be another thread's from now on.
    pub fn thread_ended(&self, thread: u32) {
        self.tell_the_plan(|planned| planned.thread_ended(thread));
    }

    fn tell_the_plan(&self, tell: impl FnOnce(&Planned)) {
        if let Some(planned) = &self.planned
            && !self.cell.is_off()
        {
            self.cell.guarded(|| {
                tell(planned);
                Some(())
            });
        }
    }

    /// Whether this process's engine serves requests.
    pub fn is_on(&self) -> bool {
        !self.config.disable.value && !self.cell.is_off()
    }

    /// The configuration in use.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

#[inline]
fn grant(provisioner: &Provisioner, block: Block) -> Grant {
    Grant { address: provisioner.engine().address(block), block }
}

/// The block that the C++ side names by its fields.
pub fn block(segment: u32, offset: usize, bytes: usize) -> Block {
    Block { segment: SegmentId::from_u32(segment), offset, bytes }
}

#[cfg(test)]
pub(crate) mod tests;
