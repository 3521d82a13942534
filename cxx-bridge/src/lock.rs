//! A mutex that knows, in a debug build, which locks its thread holds.
//!
//! So that invariant I5 (no driver call, map, unmap or wait under a lock) is asserted where such
//! calls are made, and not only believed. In a release build it is `std`'s mutex and nothing more.
//! The C++ side has its own counterpart, `cpp/lock.h`.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

#[cfg(debug_assertions)]
thread_local! {
    static HELD: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

/// What a [`Lock`] guards, until dropped.
#[derive(Debug)]
pub(crate) struct Guard<'a, T>(MutexGuard<'a, T>, Held);

/// Counts as long as it lives.
#[derive(Debug)]
struct Held;

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// What it guards, once nobody shares it.
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for its turn; nothing once a panic left what it guards in doubt.
    #[inline]
    pub(crate) fn unless_poisoned(&self) -> Option<Guard<'_, T>> {
        self.0.lock().ok().map(|guard| Guard(guard, Held::count()))
    }

    /// Nothing if it is not free: for a forked child, where nobody may be left to free it.
    pub(crate) fn if_free(&self) -> Option<Guard<'_, T>> {
        let guard = self.0.try_lock().ok()?;
        Some(Guard(guard, Held::count()))
    }

    /// Waits for its turn, for what no panic can leave half changed.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Guard(guard, Held::count())
    }
}

impl<'a, T> Guard<'a, T> {
    /// Lets go until `woken` is notified or `until` has come; nothing once a panic left what it
    /// guards in doubt.
    pub(crate) fn wait_until(self, woken: &Condvar, until: Instant) -> Option<Self> {
        #[cfg(debug_assertions)]
        assert_eq!(HELD.get(), 1, "I5: waiting under another lock");
        let Self(guard, held) = self;
        let left = until.saturating_duration_since(Instant::now());
        let (guard, _) = woken.wait_timeout(guard, left).ok()?;
        Some(Self(guard, held))
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl Held {
    #[inline]
    fn count() -> Self {
        #[cfg(debug_assertions)]
        HELD.set(HELD.get() + 1);
        Self
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

/// Asserts, in a debug build, that this thread may call the driver, map, unmap, wait or print.
#[inline]
pub(crate) fn assert_none_held(doing: &str) {
    #[cfg(debug_assertions)]
    assert_eq!(HELD.get(), 0, "I5: {doing} under a lock");
    #[cfg(not(debug_assertions))]
    let _ = doing;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn a_debug_build_knows_what_is_held() {
        let (first, second) = (Lock::new(1), Lock::new(2));
        assert_none_held("nothing yet");
        {
            let guard = first.lock();
            drop(second.lock());
            assert_eq!(*guard, 1);
            assert!(catch_unwind(|| assert_none_held("pinning")).is_err());
        }
        assert_none_held("nothing any more");
    }

    #[test]
    fn a_wait_ends_at_its_time_or_when_woken_and_has_the_lock_again() {
        let (lock, woken) = (Lock::new(0), Condvar::new());
        let guard = lock.lock().wait_until(&woken, Instant::now()).unwrap();
        assert_eq!(*guard, 0);
        drop(guard);
        let late = Instant::now() + Duration::from_secs(1000);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut guard = lock.lock();
                while *guard == 0 {
                    guard = guard.wait_until(&woken, late).unwrap();
                }
                drop(guard);
                assert_none_held("after the wait");
            });
            *lock.lock() = 1;
            woken.notify_all();
            waiting.join().unwrap();
        });
        assert!(Instant::now() < late);
    }

    #[test]
    fn nobody_waits_for_what_is_in_doubt() {
        let (lock, woken) = (Lock::new(()), Condvar::new());
        let late = Instant::now() + Duration::from_secs(1000);
        thread::scope(|scope| {
            let guard = lock.lock();
            let panicking = scope.spawn(|| {
                let _guard = lock.lock();
                panic!("with the lock held");
            });
            // It panics while this waits; nobody says so, but somebody wakes it.
            let waker = scope.spawn(|| {
                assert!(panicking.join().is_err());
                woken.notify_all();
            });
            assert!(guard.wait_until(&woken, late).is_none());
            assert_none_held("after the wait");
            waker.join().unwrap();
        });
    }

    #[test]
    fn a_panic_leaves_no_count_behind() {
        let lock = Lock::new(());
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _guard = lock.lock();
            panic!("with the lock held");
        }));
        assert!(panicked.is_err());
        assert_none_held("nothing");
        assert!(lock.unless_poisoned().is_none());
        drop(lock.lock());
    }
}
