//! The rings of this process: one for each thread that has something recorded, until it ends.
//!
//! Rings are made as threads ask for them, and never freed: a thread may be in one until the very end of the process. A
//! thread that finds none loses its entries, and looks again later.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::ring::{Losses, Owner, Ring};
use super::{Drained, Entry, Lost};
use crate::thread_number;

/// What a ring holds.
const ENTRIES: usize = 1 << 15;
/// An allocation's number has so many bits for its ring's.
const MOST: usize = 256;
/// A thread that found no ring looks again after so many entries.
const PATIENCE: u32 = 1024;

type ThreadRing = Ring<ENTRIES>;
pub(super) type Own = Owner<'static, ENTRIES>;

// Boxes, since what is not all zeros is in the library's file.
static RINGS: [OnceLock<Box<ThreadRing>>; MOST] = [const { OnceLock::new() }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Held where a ring is made: once for each of them.
static MAKING: Mutex<()> = Mutex::new(());
static LOST: Losses = Losses::new();

thread_local! {
    static OWN: Cell<Option<Own>> = const { Cell::new(None) };
    /// After so many entries the thread looks for a ring.
    static TO_WAIT: Cell<u32> = const { Cell::new(0) };
}

/// What `act` makes of this thread's ring; `None` if there are too many threads, or no memory.
#[inline]
pub(super) fn with_own<T>(act: impl FnOnce(&Own) -> T) -> Option<T> {
    let own = OWN.take().or_else(claim)?;
    let made = act(&own);
    OWN.set(Some(own));
    Some(made)
}

/// An entry that found no ring is lost.
pub(super) fn lose(what: u64) {
    LOST.add(what);
}

/// The entries that found no ring since the last call.
pub(super) fn lost() -> Lost {
    static TOLD: Mutex<Lost> = Mutex::new(Lost { pinned: 0, device: 0 });
    LOST.news(&mut TOLD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// How many rings there are.
pub(super) fn count() -> usize {
    COUNT.load(Ordering::Acquire)
}

/// Appends what a ring holds to `into`, the oldest first. What there is no memory for is lost.
pub(super) fn drain(index: usize, into: &mut Vec<Entry>) -> Drained {
    let Some(ring) = RINGS.get(index).and_then(OnceLock::get) else {
        return Drained::default();
    };
    let (thread, lost) = ring.drain(|entry| match into.try_reserve(1) {
        Ok(()) => into.extend(Entry::of(entry)),
        Err(_) => lose(entry.what),
    });
    Drained { thread, lost }
}

#[cold]
fn claim() -> Option<Own> {
    let wait = TO_WAIT.get();
    if wait != 0 {
        TO_WAIT.set(wait - 1);
        return None;
    }
    let own = claim_any();
    match own {
        Some(_) => thread_number::at_end(|_| {
            if let Some(own) = OWN.take() {
                own.leave();
            }
        }),
        None => TO_WAIT.set(PATIENCE),
    }
    own
}

fn claim_any() -> Option<Own> {
    let thread = thread_number::own();
    if thread == thread_number::NOBODYS {
        // What destructors do after the thread has given its number back is lost: nobody would leave the ring.
        return None;
    }
    let claim = |ring: &'static OnceLock<Box<ThreadRing>>| ring.get()?.claim(thread);
    if let Some(own) = RINGS[..count()].iter().find_map(claim) {
        return Some(own);
    }
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let index = COUNT.load(Ordering::Relaxed);
    let place = RINGS.get(index)?;
    let ring = ThreadRing::new(index)?;
    let own = place.get_or_init(|| Box::new(ring)).claim(thread);
    COUNT.store(index + 1, Ordering::Release);
    own
}
