//! What a thread does behind a program that goes on, it does with few threads, at low priority and
//! with rests, until somebody waits for it.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    static BEHIND: Cell<bool> = const { Cell::new(false) };
}

/// Where all cores are busy the program's own threads get three parts and these one: no less, since a
/// request may come to wait for what they do.
const NICE: libc::c_int = 5;

/// From now on this thread, and those that it starts, work behind the program.
pub(crate) fn enter() {
    BEHIND.set(true);
    // SAFETY: a number for the kernel; on Linux it is for the calling thread alone, which must not
    // be one of the program's. In the worst case the priority stays as it is.
    unsafe { libc::nice(NICE) };
}

/// Whether this thread does.
pub(super) fn entered() -> bool {
    BEHIND.get()
}

/// How many threads wait for what is done behind them.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Counts as long as it lives.
#[derive(Debug)]
pub(crate) struct Waiting;

/// From now on, and until that is dropped, this thread waits for what is done behind it.
pub(crate) fn wait() -> Waiting {
    WAITING.fetch_add(1, Ordering::Relaxed);
    Waiting
}

/// Whether any thread does.
pub(super) fn is_waited_for() -> bool {
    WAITING.load(Ordering::Relaxed) > 0
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_long_as_one_waits() {
        let (one, other) = (wait(), wait());
        drop(one);
        assert!(is_waited_for());
        drop(other);
    }
}
