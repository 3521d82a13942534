//! A mutex that counts, in a debug build, the locks that its thread holds.
//!
//! So invariant I5 (no driver call, map, unmap or wait under a lock) is asserted where such calls are
//! made. In a release build it is `std`'s mutex and nothing more, and under shuttle it counts nothing:
//! there, all threads are one to the system. Its C++ counterpart is `cpp/lock.h`. [`SpinLock`] is counted, too (`spin`).

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Instant;

use crate::sync::{Condvar, Mutex, MutexGuard};

mod spin;

pub(crate) use spin::{SpinGuard, SpinLock};

#[cfg(all(debug_assertions, not(feature = "shuttle")))]
thread_local! {
    static HELD: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

/// What a [`Lock`] guards, until dropped.
#[derive(Debug)]
pub(crate) struct Guard<'a, T>(MutexGuard<'a, T>, Held);

/// Counts a held lock until it is dropped.
#[derive(Debug)]
struct Held;

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// The value, once the lock is not shared.
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the lock; `None` if it is poisoned.
    #[inline]
    pub(crate) fn unless_poisoned(&self) -> Option<Guard<'_, T>> {
        self.0.lock().ok().map(|guard| Guard(guard, Held::count()))
    }

    /// Takes the lock if it is free: for a child, in which the holder may not exist.
    pub(crate) fn if_free(&self) -> Option<Guard<'_, T>> {
        let guard = self.0.try_lock().ok()?;
        Some(Guard(guard, Held::count()))
    }

    /// Waits for the lock; for values that no panic leaves half changed.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Guard(guard, Held::count())
    }
}

impl<'a, T> Guard<'a, T> {
    /// Releases the lock until `woken` is notified or `until` has come; `None` if it is poisoned then.
    pub(crate) fn wait_until(self, woken: &Condvar, until: Instant) -> Option<Self> {
        #[cfg(all(debug_assertions, not(feature = "shuttle")))]
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
        #[cfg(all(debug_assertions, not(feature = "shuttle")))]
        HELD.set(HELD.get() + 1);
        Self
    }
}

#[cfg(all(debug_assertions, not(feature = "shuttle")))]
impl Drop for Held {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

/// Asserts, in a debug build, that this thread may call the driver, map, unmap, wait or print.
#[inline]
pub(crate) fn assert_none_held(doing: &str) {
    #[cfg(all(debug_assertions, not(feature = "shuttle")))]
    assert_eq!(HELD.get(), 0, "I5: {doing} under a lock");
    #[cfg(not(all(debug_assertions, not(feature = "shuttle"))))]
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
            // Another thread panics while this one waits, and a third wakes it.
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
