//! A ring of entries: one thread writes, another one reads, and neither waits for the other.
//!
//! Where there is no room an entry is lost, and counted. Requests leave room for the ends of blocks, so that no end is lost
//! whose beginning was not. A thread that ends leaves its ring, which another one gets when what it holds is read. Knows
//! not what entries say, except about which memory they are. Invariants: entries up to `published` are written, and those up
//! to `taken` may be written anew; the owner alone writes `published`, the reader alone `taken`.
#![allow(unsafe_code)]

use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64 as StdU64, Ordering};

use super::Lost;
use super::code;
use crate::lock::Lock;
use crate::sync::{AtomicU32, AtomicU64};

/// So many entries on, a cache line is asked for.
const AHEAD: u64 = 8;
/// After so many entries the owner hears that they were read.
const AT_ONCE: u64 = 1024;
/// Below an allocation's ring there are so many bits for its number.
const NUMBER_BITS: u32 = 40;

/// An entry as its thread wrote it: the counter's value, the allocation, and what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Raw {
    pub ticks: u64,
    pub allocation: u64,
    pub what: u64,
}

/// See the module's documentation.
#[derive(Debug)]
#[repr(align(64))]
pub struct Ring<const ENTRIES: usize> {
    // The owner's cache line.
    published: AtomicU64,
    taken_seen: Cell<u64>,
    allocations: Cell<u64>,
    waited: Cell<u64>,
    index: u64,
    lost: Losses,
    reader: Reader,
    entries: Box<[Slot]>,
}

#[derive(Debug)]
#[repr(align(64))]
struct Reader {
    taken: AtomicU64,
    /// In the lower two bits whether it is owned; above them how often it was claimed, so that nobody takes one owner's
    /// end for another's.
    state: AtomicU32,
    thread: AtomicU32,
    /// What was lost until the last drain. One drain at a time has it.
    told: Lock<Lost>,
}

const OWNED: u32 = 0;
const LEFT: u32 = 1;
const VACANT: u32 = 2;
const STATES: u32 = 3;

type Slot = UnsafeCell<MaybeUninit<Raw>>;

// SAFETY: an `Owner` alone reaches the cells, and there is one at a time, which stays in its thread: `claim` and `leave` hand
// the ring on. A slot is written by the owner before it is published, and read by one drain before it is taken.
unsafe impl<const ENTRIES: usize> Sync for Ring<ENTRIES> {}

/// The right to write into a ring. It stays in its thread.
#[derive(Debug)]
pub struct Owner<'a, const ENTRIES: usize> {
    ring: &'a Ring<ENTRIES>,
    _here: PhantomData<*const ()>,
}

impl<const ENTRIES: usize> Ring<ENTRIES> {
    /// An empty ring that nobody owns; `None` if there is no memory. Its memory is touched where entries are written.
    pub fn new(index: usize) -> Option<Self> {
        let mut entries: Vec<Slot> = Vec::new();
        entries.try_reserve_exact(ENTRIES).ok()?;
        // SAFETY: there is room, and a slot need not be initialised.
        unsafe { entries.set_len(ENTRIES) };
        Some(Self {
            published: AtomicU64::new(0),
            taken_seen: Cell::new(0),
            allocations: Cell::new(0),
            waited: Cell::new(0),
            index: index as u64,
            lost: Losses::new(),
            reader: Reader {
                taken: AtomicU64::new(0),
                state: AtomicU32::new(VACANT),
                thread: AtomicU32::new(0),
                told: Lock::default(),
            },
            entries: entries.into_boxed_slice(),
        })
    }

    /// Takes a ring that nobody has, or that a thread of the same number has left; `None` if it is neither.
    pub fn claim(&self, thread: u32) -> Option<Owner<'_, ENTRIES>> {
        let Reader { state, thread: last, .. } = &self.reader;
        let found = state.load(Ordering::Acquire);
        // Threads one after the other have one number, and no more to wait for than one thread: the reader need not have
        // come by.
        let goes_on = found & STATES == LEFT && last.load(Ordering::Relaxed) == thread;
        if !goes_on && found & STATES != VACANT {
            return None;
        }
        let next = (found & !STATES).wrapping_add(STATES + 1) | OWNED;
        state.compare_exchange(found, next, Ordering::Acquire, Ordering::Relaxed).ok()?;
        last.store(thread, Ordering::Relaxed);
        self.waited.set(0);
        Some(Owner { ring: self, _here: PhantomData })
    }

    /// Passes on what the ring holds, the oldest first. Returns the number of the thread that wrote it, and what was lost
    /// since the last drain.
    pub fn drain(&self, mut pass: impl FnMut(Raw)) -> (u32, Lost) {
        let Reader { taken, state, thread, told } = &self.reader;
        let mut told = told.lock();
        // Before what it has published: nothing comes after this.
        let found = state.load(Ordering::Acquire);
        let end = self.published.load(Ordering::Acquire);
        let begin = taken.load(Ordering::Relaxed);
        // An owner that has published nothing since is not looked at: it may be a new one.
        let number = if begin == end { 0 } else { thread.load(Ordering::Relaxed) };
        for at in begin..end {
            // SAFETY: it is published, and its owner does not write it until it is taken.
            pass(unsafe { (*self.slot(at).get()).assume_init() });
            if (at + 1) % AT_ONCE == 0 {
                taken.store(at + 1, Ordering::Release);
            }
        }
        taken.store(end, Ordering::Release);
        // Not with its last entries, which have the owner's number.
        if begin == end && found & STATES == LEFT {
            // Unless a thread goes on with it.
            let vacant = found - LEFT + VACANT;
            let _ = state.compare_exchange(found, vacant, Ordering::Release, Ordering::Relaxed);
        }
        (number, self.lost.news(&mut told))
    }

    #[inline]
    fn slot(&self, at: u64) -> &Slot {
        &self.entries[at as usize % ENTRIES]
    }
}

impl<const ENTRIES: usize> Owner<'_, ENTRIES> {
    /// What requests leave free for the ends of blocks.
    pub const RESERVE: usize = ENTRIES / 4;

    /// Appends an entry, unless fewer than `spare` others would fit then. Returns whether it did; else counts it as lost.
    #[inline]
    pub fn push(&self, entry: Raw, spare: usize) -> bool {
        let ring = self.ring;
        let at = ring.published.load(Ordering::Relaxed);
        let room = (ENTRIES - spare) as u64;
        if at - ring.taken_seen.get() >= room {
            let taken = ring.reader.taken.load(Ordering::Acquire);
            ring.taken_seen.set(taken);
            if at - taken >= room {
                ring.lost.add(entry.what);
                return false;
            }
        }
        prefetch(ring.slot(at + AHEAD));
        // SAFETY: what was here is taken, and nobody reads it before it is published.
        unsafe { (*ring.slot(at).get()).write(entry) };
        ring.published.store(at + 1, Ordering::Release);
        true
    }

    /// A number that no other allocation has, below 2^48.
    #[inline]
    pub fn number(&self) -> u64 {
        let number = self.ring.allocations.get() + 1;
        self.ring.allocations.set(number);
        self.ring.index << NUMBER_BITS | (number & ((1 << NUMBER_BITS) - 1))
    }

    /// The thread has waited so long for the driver, and an entry will say so.
    pub(super) fn wait(&self, nanoseconds: u64) {
        self.ring.waited.update(|it| it + nanoseconds);
    }

    /// How long it has waited since this was asked last.
    #[inline]
    pub(super) fn take_waited(&self) -> u64 {
        self.ring.waited.take()
    }

    /// The thread ends.
    pub fn leave(self) {
        let state = &self.ring.reader.state;
        let left = state.load(Ordering::Relaxed) + LEFT;
        state.store(left, Ordering::Release);
    }
}

/// The reader has read these lines last, so they are in its cache.
#[inline]
fn prefetch(slot: &Slot) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: it reads nothing that the program sees.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(slot.get().cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = slot;
}

/// How many entries were dropped, of pinned and of device memory.
#[derive(Debug)]
pub(super) struct Losses([StdU64; 2]);

impl Losses {
    pub(super) const fn new() -> Self {
        Self([const { StdU64::new(0) }; 2])
    }

    /// One, of an entry that says this.
    #[cold]
    pub(super) fn add(&self, what: u64) {
        self.0[usize::from(code::is_of_device(what))].fetch_add(1, Ordering::Relaxed);
    }

    /// What was lost since this was told, which it is now.
    pub(super) fn news(&self, told: &mut Lost) -> Lost {
        let [pinned, device] = [0, 1].map(|of: usize| self.0[of].load(Ordering::Relaxed));
        let before = std::mem::replace(told, Lost { pinned, device });
        Lost { pinned: pinned - before.pinned, device: device - before.device }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
