//! What a thread does behind a program that goes on, it does with few threads, at low priority and
//! with rests, until somebody waits for it.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

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

/// How many times as long as it works a thread rests.
const REST: u32 = 2;
/// Long enough for what a page of 1 GiB takes.
const LONGEST: Duration = Duration::from_millis(500);
/// So soon a thread that rests knows that it is waited for.
const STEP: Duration = Duration::from_millis(5);

/// How long this thread has worked so far: where others have its core, it rests already.
pub(super) fn work() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes a time there. Where it has no such clock, nothing was worked.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Rests after so much work, until that is enough or any thread waits.
pub(super) fn rest(worked: Duration) {
    let until = Instant::now() + worked.saturating_mul(REST).min(LONGEST);
    while WAITING.load(Ordering::Relaxed) == 0 {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        thread::sleep(left.min(STEP));
    }
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
    fn who_sleeps_does_not_work() {
        let before = work();
        thread::sleep(Duration::from_millis(30));
        assert!(work() - before < Duration::from_millis(20));
    }

    #[test]
    fn a_rest_ends_as_soon_as_somebody_waits() {
        let start = Instant::now();
        rest(Duration::from_millis(3));
        assert!(start.elapsed() >= Duration::from_millis(6), "nobody waits");
        let start = Instant::now();
        let waiting = thread::scope(|scope| {
            let resting = scope.spawn(|| rest(Duration::from_secs(3600)));
            let waiting = wait();
            resting.join().unwrap();
            waiting
        });
        assert!(start.elapsed() < LONGEST, "{:?}", start.elapsed());
        drop((wait(), waiting));
        let start = Instant::now();
        rest(Duration::from_secs(3600));
        assert!(start.elapsed() >= LONGEST, "nobody waits any more");
    }
}
