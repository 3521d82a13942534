//! How much of a budget is taken, and when the budget is decided anew.
//!
//! The budget is decided for each pin, since it changes while a program runs, with the program's own
//! ordinary memory and with other processes. That reads files, so it is done at most every 10 ms, but for guesses; once
//! the budget is used up, so that every request meets it, once a second. Does not know how a budget is
//! decided. Invariants: concurrent takes never exceed the budget together; what is taken exceeds it only
//! if it has shrunk since. Nothing is decided under a lock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Budget;
use crate::lock::Lock;

/// A pin uses a decision for so long.
const FRESH: Duration = Duration::from_millis(10);
/// A refusal uses a decision for so long.
const GOOD: Duration = Duration::from_secs(1);

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Quota {
    taken: AtomicUsize,
    /// The budget by the latest decision.
    bytes: AtomicUsize,
    latest: Lock<Latest>,
}

#[derive(Debug)]
struct Latest {
    budget: Budget,
    /// When a thread last began to decide; before that, where it guessed.
    begun: Instant,
}

impl Latest {
    fn new(budget: Budget, begun: Instant) -> Self {
        let begun = if budget.guessed { begun.checked_sub(GOOD).unwrap_or(begun) } else { begun };
        Self { budget, begun }
    }
}

impl Quota {
    /// A quota with nothing taken.
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            taken: AtomicUsize::new(0),
            bytes: AtomicUsize::new(budget.bytes),
            latest: Lock::new(Latest::new(budget, Instant::now())),
        }
    }

    /// Takes `bytes`, if so much is left; `decide` gives the budget for what is taken already.
    pub(crate) fn take(&self, bytes: usize, decide: impl FnOnce(usize) -> Budget) -> bool {
        let fits = bytes <= self.left();
        let now = Instant::now();
        if self.begins_to_decide(if fits { FRESH } else { GOOD }, now) {
            self.set(decide(self.taken()));
        } else if !fits {
            return false;
        }
        let most = self.bytes.load(Ordering::Relaxed);
        let more = |taken: usize| {
            let sum = taken.checked_add(bytes)?;
            (sum <= most).then_some(sum)
        };
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Puts back what was taken.
    pub(crate) fn put(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Decides the budget anew, if the latest decision is old: for callers that read it.
    pub(crate) fn refresh(&self, now: Instant, decide: impl FnOnce(usize) -> Budget) {
        if self.begins_to_decide(GOOD, now) {
            self.set(decide(self.taken()));
        }
    }

    /// The latest decision.
    pub(crate) fn budget(&self) -> Budget {
        self.latest.lock().budget.clone()
    }

    /// Bytes taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Bytes left by the latest decision.
    pub(crate) fn left(&self) -> usize {
        let most = self.bytes.load(Ordering::Relaxed);
        most.saturating_sub(self.taken())
    }

    /// Whether the latest decision is older than `old` and no other thread is deciding.
    fn begins_to_decide(&self, old: Duration, now: Instant) -> bool {
        let mut latest = self.latest.lock();
        let is_old = now.saturating_duration_since(latest.begun) >= old;
        if is_old {
            latest.begun = now;
        }
        is_old
    }

    fn set(&self, budget: Budget) {
        let mut latest = self.latest.lock();
        self.bytes.store(budget.bytes, Ordering::Relaxed);
        *latest = Latest::new(budget, latest.begun);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn of(bytes: usize) -> Budget {
        let why = String::new();
        Budget { bytes, why, guessed: false }
    }

    /// Makes the latest decision a minute old.
    fn age(quota: &Quota) {
        quota.latest.lock().begun -= Duration::from_secs(60);
    }

    #[test]
    fn it_is_never_overdrawn() {
        let quota = Quota::new(of(1000));
        let taken: usize = thread::scope(|scope| {
            let take = || (0..100).filter(|_| quota.take(7, |_| of(1000))).count();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|it| it.join().unwrap()).sum()
        });
        assert_eq!((taken, quota.left()), (142, 6));
        assert!(!quota.take(usize::MAX, |_| of(1000)), "a sum that overflows");
        quota.put(7);
        assert!(quota.take(13, |_| of(1000)));
    }

    #[test]
    fn a_moment_of_shortage_passes_and_who_reads_it_sees_what_is_new_once_a_second() {
        let quota = Quota::new(of(100));
        assert!(quota.take(60, |_| of(100)));
        // Just decided: not again for each request that does not fit, nor for each reader.
        assert!(!quota.take(60, |_| panic!("decided twice in a second")));
        quota.refresh(Instant::now(), |_| panic!("decided twice in a second"));
        age(&quota);
        assert!(quota.take(60, |taken| of(taken + 200)));
        assert_eq!((quota.taken(), quota.left()), (120, 140));
        assert_eq!(quota.budget(), of(260));
        age(&quota);
        quota.refresh(Instant::now(), |taken| of(taken + 7));
        assert_eq!(quota.budget().bytes, 127);
        quota.refresh(Instant::now(), |_| panic!("decided twice in a second"));
    }

    #[test]
    fn a_guess_is_decided_anew_by_the_next_pin_and_reader() {
        let guess = |bytes: usize| Budget { guessed: true, ..of(bytes) };
        let quota = Quota::new(guess(100));
        assert!(quota.take(60, |_| guess(90)));
        quota.refresh(Instant::now(), |taken| guess(taken + 10));
        assert!(!quota.take(60, |_| of(80)) && quota.take(20, |_| panic!("decided twice in a second")));
    }

    #[test]
    fn a_budget_that_shrank_leaves_nothing_and_underflows_nowhere() {
        let quota = Quota::new(of(100));
        assert!(quota.take(80, |_| of(100)));
        age(&quota);
        // As if another thread had taken more while this one decided.
        assert!(!quota.take(10, |_| of(30)));
        assert_eq!((quota.left(), quota.taken()), (0, 80));
        quota.put(60);
        assert_eq!(quota.left(), 10);
        assert!(quota.take(10, |_| of(30)));
    }
}
