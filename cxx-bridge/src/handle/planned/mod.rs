//! Planned memory: regions that are pinned as a plan says, and requests that are served from their slots.
//!
//! It lies beside the engine, which knows nothing of it: whatever no slot serves is the engine's. Before the engine
//! pins memory, such a request gets what the plan leaves idle.
//!
//! Invariants: no lock is held while memory is pinned or unpinned (I5); a region is unpinned only while nothing lies in
//! it; once a region was refused, requests go on without it.

mod clears;
mod idle;
mod misfit;
mod pins;

use idle::Unused;
use pinbuddy_core::{Block, SegmentId, Stats};
pub(super) use pinbuddy_slots::Part;
use pinbuddy_slots::{Counts, Slots, Taken};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Grant, Handle};
use crate::backing::Memory;
use crate::lock::{Lock, SpinLock};
use crate::sync::Condvar;

/// The segment of a block that is a slot; its offset is the slot's number.
const SLOT: SegmentId = SegmentId::outside(0);
/// The segment of a block in what the plan leaves idle; its offset is its address.
const BORROWED: SegmentId = SegmentId::outside(1);

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Planned {
    /// Nearly all of a planned pair is two turns with this lock.
    state: SpinLock<State>,
    /// How many slots there are. Outside the lock, which a child of a fork may never get.
    slots: usize,
    /// Notified, with its lock held, when pinning has ended. That lock is taken before the state's.
    waiting: Lock<()>,
    changed: Condvar,
    /// Whether requests wait until the regions are pinned.
    waits: bool,
    /// What was said.
    refused: AtomicBool,
    given_up: AtomicBool,
    misfit: AtomicBool,
    /// The plan came once and the program strayed from it: all requests are served with what is idle.
    is_room: AtomicBool,
    /// The recording beside the plan tells whose it is.
    judged_elsewhere: AtomicBool,
}

#[derive(Debug)]
struct State {
    slots: Slots,
    phase: Phase,
    /// Regions that could not be pinned since the last clear: no request asks for them again.
    refused: Vec<usize>,
    stats: Stats,
    /// What had been counted when a clear left idle regions to the loop.
    left: Option<Counts>,
    unused: Unused,
    /// Regions went back by themselves, and have not all come back since.
    wakes: bool,
    /// Requests without a place since the beginning.
    unserved: u64,
}

/// Whether the regions are pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Cold,
    Pinning,
    /// All of them, or all that could be.
    Done,
    /// They were, and some have been returned since: each is pinned again when a request needs it.
    Returned,
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
            refused: Vec::new(),
            stats: Stats::default(),
            left: None,
            unused: Unused::default(),
            wakes: false,
            unserved: 0,
        };
        Self {
            slots: state.slots.len(),
            state: SpinLock::new(state),
            waiting: Lock::default(),
            changed: Condvar::new(),
            waits,
            refused: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            misfit: AtomicBool::new(false),
            is_room: AtomicBool::new(false),
            judged_elsewhere: AtomicBool::new(false),
        }
    }

    /// How many slots there are.
    pub(super) fn len(&self) -> usize {
        self.slots
    }

    /// Whether a thread of the parent held the lock at the fork, or was about to pin: a child would wait for it.
    pub(super) fn is_busy(&self) -> bool {
        let state = self.state.if_free();
        state.is_none_or(|it| it.phase == Phase::Pinning) || self.waiting.if_free().is_none()
    }

    /// Until it is dropped, others wait: for tests.
    #[cfg(test)]
    pub(super) fn hold(&self) -> impl Sized + '_ {
        self.state.lock()
    }

    pub(super) fn show(&self) -> Shown {
        let state = self.state.lock();
        Shown {
            counts: state.slots.counts(),
            regions: state.slots.regions(),
            whole: state.slots.missing().next().is_none(),
        }
    }

    pub(super) fn counts(&self) -> Counts {
        self.state.lock().slots.counts()
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

    /// This thread has ended.
    pub(super) fn thread_ended(&self, thread: u32) {
        self.state.lock().slots.thread_ended(thread);
    }

    /// The slot in use that begins at this address.
    pub(super) fn slot_at(&self, address: usize) -> Option<u32> {
        self.state.lock().slots.at(address)
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
        Some(self.grant(taken))
    }

    fn serve_needed(&mut self, slot: u32) -> Option<Grant> {
        let taken = self.slots.serve_needed(slot)?;
        Some(self.grant(taken))
    }

    #[inline]
    fn grant(&mut self, taken: Taken) -> Grant {
        let bytes = self.slots.bytes_of(taken.slot);
        self.stats.block_lent(bytes as u64);
        let block = Block { segment: SLOT, offset: taken.slot as usize, bytes };
        Grant { address: taken.address, block }
    }

    fn borrow(&mut self, bytes: usize) -> Option<Grant> {
        let borrowed = self.slots.borrow(bytes)?;
        self.stats.block_lent(borrowed.bytes as u64);
        let block = Block { segment: BORROWED, offset: borrowed.address, bytes: borrowed.bytes };
        Some(Grant { address: borrowed.address, block })
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

impl<M: Memory> Handle<M> {
    /// Passes on the place that a plan has for a request of this thread's, whose number is small; returns whether there
    /// is one. It is passed on under the lock, so that nothing of it is stored twice: a load of several fields would wait
    /// for the stores of each.
    #[inline]
    pub fn place_planned(&'static self, thread: u32, bytes: usize, put: impl FnOnce(Grant)) -> bool {
        let Some(planned) = self.planned.as_ref() else {
            return false;
        };
        let placed = self.cell.guarded(|| {
            if self.cell.is_off() {
                return None;
            }
            let mut state = planned.state.lock();
            if state.phase == Phase::Done {
                let placed = state.request(thread, bytes).map(put);
                if placed.is_none() {
                    state.unserved += 1;
                    let tells = Planned::is_time_to_look(state.unserved);
                    let given_up = state.slots.has_given_up();
                    if state.slots.has_only_room() {
                        planned.is_room.store(true, Ordering::Relaxed);
                    }
                    drop(state);
                    if given_up {
                        self.say_given_up(planned);
                    }
                    if tells {
                        self.say_misfit(planned);
                    }
                }
                return placed;
            }
            drop(state);
            self.request_and_pin(planned, thread, bytes).map(put)
        });
        placed.is_some()
    }

    /// The same, as a value.
    #[cfg(test)]
    pub(crate) fn request_planned(&'static self, thread: u32, bytes: usize) -> Option<Grant> {
        let mut placed = None;
        self.place_planned(thread, bytes, |grant| placed = Some(grant));
        placed
    }

    /// A place in the memory of a plan that came once, for a program that strayed from it. Before the engine, which has none.
    #[inline]
    pub(super) fn request_room(&self, bytes: usize) -> Option<Grant> {
        let planned = self.planned.as_ref()?;
        if !planned.is_room.load(Ordering::Relaxed) || self.cell.is_off() {
            return None;
        }
        planned.state.lock().borrow(bytes)
    }

    /// What a plan leaves idle, for a request that the engine would pin memory for.
    pub(super) fn borrow(&self, bytes: usize) -> Option<Grant> {
        self.planned.as_ref()?.state.lock().borrow(bytes)
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
        // In a child, a thread of the parent may hold the lock.
        if let Some(planned) = self.planned.as_ref().filter(|_| !self.cell.is_child()) {
            self.cell.guarded(|| {
                act(&mut planned.state.lock(), block);
                Some(())
            });
        }
        true
    }
}
