//! What threads record of requests, frees and streams: entries of their rings.
//!
//! Off, it costs a request one branch on a flag beside the threshold, and a free one on a flag in the block; C++ has both.
//! Invariant: a block names its allocation from a request that was recorded to the block's end. So an end is recorded only
//! if the beginning was. Knows neither sinks nor files.

use std::cell::Cell;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Instant;

use super::ring::Raw;
use super::rings::{self, Own};
use super::{Allocation, Drained, Entry, Lost, Source, clock, code};

/// The number of the recording under way, which allocations have; 0 while there is none. Entries of an earlier one may
/// still lie in rings.
static SESSION: AtomicU16 = AtomicU16::new(0);

/// A wait for the driver, in the call of the program's that is under way.
#[derive(Clone, Copy)]
struct Wait {
    since: Instant,
    in_request: bool,
    /// Waits within each other count once.
    depth: u32,
}

thread_local! {
    static WAIT: Cell<Option<Wait>> = const { Cell::new(None) };
}

/// The rings of this process, as a source.
#[derive(Debug)]
pub(crate) struct Rings {
    /// Told whether requests are recorded from now on.
    pub(crate) switch: fn(bool),
}

impl Source for Rings {
    fn record(&self, session: u16) {
        SESSION.store(session, Ordering::Relaxed);
        (self.switch)(session != 0);
    }

    fn ticks(&self) -> u64 {
        clock::ticks()
    }

    fn rings(&self) -> usize {
        rings::count()
    }

    fn drain(&self, ring: usize, into: &mut Vec<Entry>) -> Drained {
        rings::drain(ring, into)
    }

    fn lost(&self) -> Lost {
        rings::lost()
    }
}

/// Whether anything is recorded.
pub(crate) fn record_is_on() -> bool {
    session() != 0
}

/// A block serves a request of so many bytes, which is the engine's to serve unless it is private. Returns whether that
/// was recorded; then the block has this allocation.
pub(crate) fn record_request(bytes: usize, is_private: bool, allocation: &mut u64) -> bool {
    let kind = if is_private { code::PRIVATE_REQUEST } else { code::REQUEST };
    request(code::entry(kind, bytes as u64), true, allocation)
}

/// A recorded block is freed; so many `record_done` follow, and none if it is 0.
pub(crate) fn record_free(allocation: u64, pending: usize) {
    push(allocation, code::entry(code::FREE, pending as u64));
}

/// One of the events on a freed block is complete.
pub(crate) fn record_done(allocation: u64) {
    push(allocation, code::entry(code::DONE, 0));
}

/// A recorded block is used on a stream of this name.
pub(crate) fn record_use(allocation: u64, stream: u64) {
    push(allocation, code::entry(code::USE, stream));
}

/// The cache was cleared.
pub(crate) fn record_clear() {
    push(of_none(), code::entry(code::CLEAR, 0));
}

/// An iteration is over.
pub(crate) fn record_iteration() {
    push(of_none(), code::entry(code::ITERATION, 0));
}

/// This thread begins to wait for the driver. `in_request`: memory is pinned for a request; else it is given back, unless a
/// request waits for that.
pub(crate) fn wait_begins(in_request: bool) {
    let wait = WAIT.get().unwrap_or_else(|| {
        if record_is_on() {
            // From now on it has a number, so threads that wait at the same time are told apart, though the first of them
            // may end before the others are served.
            rings::with_own(|_| ());
        }
        let since = Instant::now();
        Wait { since, in_request, depth: 0 }
    });
    let depth = wait.depth + 1;
    WAIT.set(Some(Wait { depth, ..wait }));
}

/// The thread has waited. A request's entry is followed by how long, or else a call's that gave memory back. What a request
/// waited that failed is the next one's.
pub(crate) fn wait_ends() {
    let Some(wait) = WAIT.get() else {
        return;
    };
    if wait.depth > 1 {
        let depth = wait.depth - 1;
        WAIT.set(Some(Wait { depth, ..wait }));
        return;
    }
    WAIT.set(None);
    let took = u64::try_from(wait.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let in_request = wait.in_request && record_is_on();
    if !in_request || rings::with_own(|own| own.wait(took)).is_none() {
        push(of_none(), code::entry(code::WAIT, took));
    }
}

pub(super) fn session() -> u16 {
    SESSION.load(Ordering::Relaxed)
}

/// What entries about no allocation have in its place.
pub(super) fn of_none() -> u64 {
    Allocation::new(session(), 0).0
}

/// Records a request under a new allocation, and what the thread has waited, if requests of this memory say so.
pub(super) fn request(what: u64, says_wait: bool, allocation: &mut u64) -> bool {
    let session = session();
    if session == 0 {
        return false;
    }
    let act = |own: &Own| {
        let new = Allocation::new(session, own.number()).0;
        let kept = write(own, new, what, Own::RESERVE);
        if kept {
            *allocation = new;
        }
        let waited = if says_wait { own.take_waited() } else { 0 };
        if waited != 0 {
            let about = if kept { new } else { of_none() };
            write(own, about, code::entry(code::WAIT, waited), 0);
        }
        kept
    };
    rings::with_own(act).unwrap_or_else(|| {
        rings::lose(what);
        false
    })
}

/// An entry of this recording; others are dropped.
pub(super) fn push(allocation: u64, what: u64) {
    let session = session();
    if session == 0 || Allocation(allocation).session() != session {
        return;
    }
    if rings::with_own(|own| write(own, allocation, what, 0)).is_none() {
        rings::lose(what);
    }
}

#[inline]
fn write(own: &Own, allocation: u64, what: u64, spare: usize) -> bool {
    let ticks = clock::ticks();
    let entry = Raw { ticks, allocation, what };
    own.push(entry, spare)
}

#[cfg(all(test, not(feature = "shuttle")))]
pub(super) mod tests;
