//! Planned memory: regions that are pinned as a plan says, and requests that are served from their slots.
//!
//! It lies beside the engine, which knows nothing of it: whatever no slot serves is the engine's. Before the engine
//! pins memory, such a request gets what the plan leaves idle.
//!
//! Invariants: no lock is held while memory is pinned or unpinned (I5); a region is unpinned only while nothing lies in
//! it; once a region was refused, requests go on without it.

use std::ops::Range;
use std::time::{Duration, Instant};

use pinbuddy_core::{Block, Region, SegmentId, Stats};
pub(super) use pinbuddy_slots::Part;
use pinbuddy_slots::{Counts, Slots};

use super::cell::EngineCell;
use super::{Grant, Handle};
use crate::backing::{Control, Memory, background};
use crate::lock::{Guard, Lock};
use crate::log::{self, Bytes};
use crate::sync::{AtomicBool, Condvar, thread};

/// The segment of a block that is a slot; its offset is the slot's number.
const SLOT: SegmentId = SegmentId::outside(0);
/// The segment of a block in what the plan leaves idle; its offset is its address.
const BORROWED: SegmentId = SegmentId::outside(1);

/// A thread that waits for the plan's regions looks again after this time, in case it missed that they are there.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Planned {
    state: Lock<State>,
    /// Notified when pinning has ended.
    changed: Condvar,
    /// Whether requests wait until the regions are pinned.
    waits: bool,
    refused: AtomicBool,
}

#[derive(Debug)]
struct State {
    slots: Slots,
    phase: Phase,
    stats: Stats,
}

/// Whether the regions are pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Cold,
    Pinning,
    /// All of them, or all that could be.
    Done,
}

/// What a report says of it.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) counts: Counts,
    /// The pinned regions and their blocks.
    pub(super) regions: Vec<(Range<usize>, Vec<Part>)>,
    /// Whether all regions of the plan are pinned.
    pub(super) whole: bool,
}

impl Planned {
    /// Nothing is pinned yet. With `waits`, the first request pins all regions, and others wait for that.
    pub(super) fn new(slots: Slots, waits: bool) -> Self {
        let state = State {
            slots,
            phase: Phase::Cold,
            stats: Stats::default(),
        };
        Self {
            state: Lock::new(state),
            changed: Condvar::new(),
            waits,
            refused: AtomicBool::new(false),
        }
    }

    /// How many slots there are.
    pub(super) fn len(&self) -> usize {
        self.state.lock().slots.len()
    }

    /// Whether a thread of the parent held the lock at the fork.
    pub(super) fn is_busy(&self) -> bool {
        self.state.if_free().is_none()
    }

    pub(super) fn show(&self) -> Shown {
        let state = self.state.lock();
        Shown {
            counts: state.slots.counts(),
            regions: state.slots.regions(),
            whole: state.slots.missing().next().is_none(),
        }
    }

    pub(super) fn stats(&self) -> Stats {
        self.state.lock().stats()
    }

    pub(super) fn reset_peaks(&self) {
        self.state.lock().stats.reset_peaks();
    }

    pub(super) fn reset_accumulated(&self) {
        self.state.lock().stats.reset_accumulated();
    }

    /// An iteration of this thread's is over.
    pub(super) fn iteration(&self, thread: u32) {
        self.state.lock().slots.iteration(thread);
    }

    /// The slot in use that begins at this address.
    pub(super) fn slot_at(&self, address: usize) -> Option<u32> {
        self.state.lock().slots.at(address)
    }

    /// Whether `block` is one of its own: then `act` is called under the lock.
    #[inline]
    fn of_its_own(&self, block: Block, act: impl FnOnce(&mut State, Block)) {
        act(&mut self.state.lock(), block);
    }
}

impl State {
    fn stats(&self) -> Stats {
        let mut stats = self.stats;
        stats.idle_bytes = stats.pinned_bytes.current - stats.active_bytes.current;
        stats
    }

    #[inline]
    fn request(&mut self, thread: u32, bytes: usize) -> Option<Grant> {
        let taken = self.slots.request(thread, bytes)?;
        let bytes = self.slots.bytes_of(taken.slot);
        self.stats.block_lent(bytes as u64);
        let block = Block {
            segment: SLOT,
            offset: taken.slot as usize,
            bytes,
        };
        Some(Grant {
            address: taken.address,
            block,
        })
    }

    fn borrow(&mut self, bytes: usize) -> Option<Grant> {
        let borrowed = self.slots.borrow(bytes)?;
        self.stats.block_lent(borrowed.bytes as u64);
        let block = Block {
            segment: BORROWED,
            offset: borrowed.address,
            bytes: borrowed.bytes,
        };
        Some(Grant {
            address: borrowed.address,
            block,
        })
    }

    /// Whether the block was in use.
    #[inline]
    fn release(&mut self, block: Block) -> bool {
        let was_in_use = if block.segment == SLOT {
            self.slots.release(block.offset as u32)
        } else {
            self.slots.give_back(block.offset)
        };
        if was_in_use {
            self.stats.block_returned(block.bytes as u64);
        }
        was_in_use
    }

    fn set_pending(&mut self, block: Block, pending: bool) {
        if block.segment == SLOT {
            self.slots.set_pending(block.offset as u32, pending);
        } else {
            self.slots.set_pending_at(block.offset, pending);
        }
        if pending {
            self.stats.block_deferred(block.bytes as u64);
        } else {
            self.stats.block_cached(block.bytes as u64);
        }
    }
}

/// Pins of regions that a plan asks for, which only the end of the process stops.
#[derive(Debug)]
struct Own<'a>(&'a EngineCell);

impl Control for Own<'_> {
    fn go_on(&self) -> bool {
        !self.0.is_closed()
    }
}

/// The thread that pins the plan's regions; dropping it ends that, after a panic too.
#[derive(Debug)]
struct Pinning<'a>(&'a Planned);

impl Drop for Pinning<'_> {
    fn drop(&mut self) {
        self.0.state.lock().phase = Phase::Done;
        self.0.changed.notify_all();
    }
}

impl<M: Memory> Handle<M> {
    /// The place that a plan has for a request of this thread's, whose number is small.
    #[inline]
    pub fn request_planned(&'static self, thread: u32, bytes: usize) -> Option<Grant> {
        let planned = self.planned.as_ref()?;
        self.cell.guarded(|| {
            if self.cell.is_off() {
                return None;
            }
            let mut state = planned.state.lock();
            if state.phase != Phase::Done {
                drop(state);
                state = self.begin_plan(planned)?;
            }
            state.request(thread, bytes)
        })
    }

    /// What a plan leaves idle, for a request that the engine would pin memory for.
    pub(super) fn borrow(&self, bytes: usize) -> Option<Grant> {
        self.planned.as_ref()?.state.lock().borrow(bytes)
    }

    /// Pins the plan's regions; with `wait`, returns when that is over.
    pub(super) fn warm_up_plan(&'static self, wait: bool) {
        if let Some(planned) = &self.planned {
            if wait {
                drop(self.wait_for_plan(planned));
            } else {
                drop(self.begin_in_a_thread(planned));
            }
        }
    }

    /// Whether the block is planned memory; it is released then.
    #[inline]
    pub(super) fn releases_planned(&self, block: Block) -> bool {
        self.on_planned(block, |state, block| {
            let was_in_use = state.release(block);
            debug_assert!(was_in_use, "{block:?} was released twice");
        })
    }

    /// Whether the block is planned memory; it is pending, or not any more, then.
    pub(super) fn sets_planned_pending(&self, block: Block, pending: bool) -> bool {
        self.on_planned(block, |state, block| state.set_pending(block, pending))
    }

    #[inline]
    fn on_planned(&self, block: Block, act: impl FnOnce(&mut State, Block)) -> bool {
        if block.segment.number_outside().is_none() {
            return false;
        }
        if let Some(planned) = &self.planned {
            planned.of_its_own(block, act);
        }
        true
    }

    /// Regions of the plan in which nothing lies, to be unpinned; the next planned request pins them again.
    pub(super) fn take_idle_plan(&self) -> Vec<Region> {
        let Some(planned) = &self.planned else {
            return Vec::new();
        };
        let mut state = planned.state.lock();
        let idle: Vec<Region> = state.slots.take_idle().into_iter().map(region).collect();
        for region in &idle {
            state.stats.region_unpinned(region.bytes as u64, false);
        }
        if state.phase == Phase::Done {
            state.phase = Phase::Cold;
        }
        idle
    }

    /// Waits for pins of the plan's regions, which have been told to stop, until a time.
    pub(super) fn wait_for_plan_to_stop(&self, until: Instant) {
        let Some(planned) = &self.planned else { return };
        let mut awake = planned.state.unless_poisoned();
        while let Some(state) = awake.filter(|it| it.phase == Phase::Pinning) {
            if Instant::now() >= until {
                break;
            }
            let soon = Instant::now() + Duration::from_millis(1);
            awake = state.wait_until(&planned.changed, soon);
        }
    }

    /// A request came before all regions are pinned.
    #[cold]
    fn begin_plan<'a>(&'static self, planned: &'a Planned) -> Option<Guard<'a, State>> {
        if planned.waits {
            let state = self.wait_for_plan(planned);
            self.stay_if_closed();
            return state;
        }
        Some(self.begin_in_a_thread(planned))
    }

    fn begin_in_a_thread<'a>(&'static self, planned: &'a Planned) -> Guard<'a, State> {
        let mut state = planned.state.lock();
        if state.phase == Phase::Cold {
            state.phase = Phase::Pinning;
            drop(state);
            self.pin_plan_in_a_thread();
            state = planned.state.lock();
        }
        state
    }

    /// Pins the missing regions, unless another thread does; returns when that is over.
    fn wait_for_plan<'a>(&self, planned: &'a Planned) -> Option<Guard<'a, State>> {
        let _waiting = background::wait();
        let mut state = planned.state.lock();
        while state.phase != Phase::Done && !self.cell.is_closed() {
            if state.phase == Phase::Cold {
                state.phase = Phase::Pinning;
                drop(state);
                self.pin_missing(planned);
                state = planned.state.lock();
            } else {
                state = state.wait_until(&planned.changed, Instant::now() + LOOK_AGAIN)?;
            }
        }
        Some(state)
    }

    fn pin_plan_in_a_thread(&'static self) {
        let device = self.pinner.memory.device();
        let thread = thread::Builder::new().name("pinbuddy-plan".to_owned());
        let work = move || {
            self.pinner.memory.start(device);
            background::enter();
            self.cell.guarded(|| {
                self.pin_missing(self.planned.as_ref()?);
                Some(())
            });
        };
        if let Err(why) = thread.spawn(work) {
            self.once(&self.notices.no_thread, || {
                format!("no thread for the plan's memory: {why}")
            });
            if let Some(planned) = &self.planned {
                drop(Pinning(planned));
            }
        }
    }

    /// Pins all regions that are missing, in their order, up to the first that is refused.
    fn pin_missing(&self, planned: &Planned) {
        let _pinning = Pinning(planned);
        let device = self.pinner.memory.device();
        let (mut count, mut sum) = (0, 0);
        loop {
            let next = planned.state.lock().slots.missing().next();
            let Some((index, bytes)) = next else { break };
            match self.pinner.pin(bytes, device, &Own(&self.cell)) {
                Ok((region, _)) => {
                    let mut state = planned.state.lock();
                    state.slots.pinned(index, region.base);
                    state.stats.region_adopted(bytes as u64, false);
                    (count, sum) = (count + 1, sum + bytes);
                }
                Err(refused) => {
                    self.once(&planned.refused, || {
                        format!(
                            "the plan asks for {} of pinned memory: {}. What has no place is served as \
                             without a plan",
                            Bytes(bytes as u64),
                            refused.reason()
                        )
                    });
                    break;
                }
            }
        }
        log::info(|| {
            let size = Bytes(sum as u64);
            format!("pinned {size} in {count} regions, as the plan says")
        });
    }
}

fn region((_, at): (usize, Range<usize>)) -> Region {
    Region {
        base: at.start,
        bytes: at.end - at.start,
    }
}
