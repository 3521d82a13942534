//! Regions that come and go, of all devices: whether a thread is at it, and how often one was.
//!
//! A region lies in no plan for a moment before it is PyTorch's again. A request of another thread that fails in that moment, or
//! failed just before it, lacks what is there now: it is tried again, as it would have waited for PyTorch's lock and found it. Knows
//! no region. Invariant: whoever counts a move as begun counts it as done.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

static UNDER_WAY: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);

/// Before the first region of several is taken out of its plan, or asked for.
pub(super) fn begin() {
    UNDER_WAY.fetch_add(1, Ordering::SeqCst);
}

/// They are where they belong.
pub(crate) fn device_moved() {
    DONE.fetch_add(1, Ordering::SeqCst);
    UNDER_WAY.fetch_sub(1, Ordering::SeqCst);
}

/// How often regions have come or gone.
pub(crate) fn device_moves() -> u64 {
    DONE.load(Ordering::Relaxed)
}

/// Whether any have since there were so many moves. Waits for those under way, but not for long: whoever moves them may need
/// Python's lock, which this thread may have.
pub(crate) fn device_moved_since(before: u64) -> bool {
    let until = Instant::now() + Duration::from_secs(1);
    while UNDER_WAY.load(Ordering::SeqCst) > 0 && Instant::now() < until {
        sleep(Duration::from_micros(100));
    }
    DONE.load(Ordering::SeqCst) != before
}
