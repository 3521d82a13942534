//! Background work: at low priority and with rests, until a thread waits for it.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Control;

thread_local! {
    static BEHIND: Cell<bool> = const { Cell::new(false) };
}

/// On busy cores the program's threads get three parts of the time and background threads one. No less,
/// since a request may come to wait for them.
const NICE: libc::c_int = 5;

/// From now on this thread, and those that it starts, work in the background.
pub(crate) fn enter() {
    BEHIND.set(true);
    // SAFETY: the argument is a number. On Linux it sets the calling thread's priority only; if it
    // fails, the priority stays as it is.
    unsafe { libc::nice(NICE) };
}

/// Whether this thread works in the background.
pub(super) fn entered() -> bool {
    BEHIND.get()
}

/// How many threads wait for background work.
#[derive(Debug, Default)]
struct Waiters(AtomicUsize);

/// This process's waiters.
static WAITERS: Waiters = Waiters(AtomicUsize::new(0));

/// Counts a waiter until it is dropped.
#[derive(Debug)]
pub(crate) struct Waiting<'a>(&'a Waiters);

/// Until the result is dropped, this thread waits for background work.
pub(crate) fn wait() -> Waiting<'static> {
    WAITERS.wait()
}

/// Rests after `worked` of work: until that is enough, any thread waits, or `control` ends it.
pub(super) fn rest(worked: Duration, control: &dyn Control) {
    WAITERS.rest(worked, control);
}

/// A thread rests so many times as long as it worked.
const REST: u32 = 2;
/// The longest rest, which is enough after a page of 1 GiB.
const LONGEST: Duration = Duration::from_millis(500);
/// How often a resting thread looks for waiters.
const STEP: Duration = Duration::from_millis(5);

impl Waiters {
    fn wait(&self) -> Waiting<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Waiting(self)
    }

    fn rest(&self, worked: Duration, control: &dyn Control) {
        let until = Instant::now() + worked.saturating_mul(REST).min(LONGEST);
        while self.0.load(Ordering::Relaxed) == 0 && control.go_on() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread::sleep(left.min(STEP));
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Processor time of this thread: time in which others have its core counts as rest.
pub(crate) fn work() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a time to `time`, which is valid; without such a clock it stays 0.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::super::Foreground;
    use super::*;
    use crate::sync::Dial;

    #[test]
    fn who_sleeps_does_not_work() {
        let before = work();
        thread::sleep(Duration::from_millis(30));
        assert!(work() - before < Duration::from_millis(20));
    }

    #[test]
    fn a_rest_is_longer_than_the_work_and_bounded() {
        let waiters = Waiters::default();
        for (worked, rested) in [(3, 6), (3_600_000, 500)] {
            let start = Instant::now();
            waiters.rest(Duration::from_millis(worked), &Foreground);
            assert!(start.elapsed() >= Duration::from_millis(rested));
        }
    }

    #[test]
    fn nobody_rests_as_long_as_one_waits_or_once_it_is_to_end() {
        let waiters = Waiters::default();
        let (one, other) = (waiters.wait(), waiters.wait());
        drop(one);
        let start = Instant::now();
        for _ in 0..1000 {
            waiters.rest(LONGEST, &Foreground);
        }
        assert!(start.elapsed() < 1000 * STEP);
        drop(other);
        thread::scope(|scope| {
            let resting = scope.spawn(|| waiters.rest(LONGEST, &Foreground));
            // Kept, so that a rest that begins later ends at once, too.
            let waiting = waiters.wait();
            resting.join().unwrap();
            drop(waiting);
        });
        assert_eq!(waiters.0.load(Ordering::Relaxed), 0);
        let start = Instant::now();
        waiters.rest(LONGEST, &Dial::at(0));
        assert!(start.elapsed() < LONGEST);
    }
}
