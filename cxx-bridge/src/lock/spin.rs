//! A spin lock, for what is held for a few instructions nearly always: half the cost of a mutex, whose release is a second
//! atomic exchange.
//!
//! A thread that finds it taken looks a few times, then yields, then sleeps for short times: the holder may have lost its
//! processor, or do what takes long but is rare. After a panic the lock is free: for values that no panic leaves half
//! changed, or that are not asked any more then. Under shuttle it is a mutex, so that shuttle sees it.
#![allow(unsafe_code)]

#[cfg(feature = "shuttle")]
pub(crate) use mutex::{SpinGuard, SpinLock};
#[cfg(not(feature = "shuttle"))]
pub(crate) use spinning::{SpinGuard, SpinLock};

#[cfg(not(feature = "shuttle"))]
mod spinning {
    use std::cell::UnsafeCell;
    use std::hint;
    use std::marker::PhantomData;
    use std::ops::{Deref, DerefMut};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::super::Held;

    /// Long enough for a holder that is running.
    const LOOKS: u32 = 100;
    const YIELDS: u32 = 10;
    const REST: Duration = Duration::from_micros(50);

    /// See the module's documentation.
    #[derive(Debug, Default)]
    pub(crate) struct SpinLock<T> {
        is_taken: AtomicBool,
        value: UnsafeCell<T>,
    }

    // SAFETY: the value is reached through a guard alone, and `is_taken` lets one thread at a time have one.
    unsafe impl<T: Send> Sync for SpinLock<T> {}

    /// What a [`SpinLock`] guards, until dropped.
    #[derive(Debug)]
    pub(crate) struct SpinGuard<'a, T> {
        lock: &'a SpinLock<T>,
        _held: Held,
        /// It stays with its thread, which is the one that holds the lock.
        _here: PhantomData<*const ()>,
    }

    impl<T> SpinLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self { is_taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
        }

        /// Waits for the lock.
        #[inline]
        pub(crate) fn lock(&self) -> SpinGuard<'_, T> {
            if self.is_taken.swap(true, Ordering::Acquire) {
                self.wait();
            }
            self.guard()
        }

        /// Takes the lock if it is free: for a child, in which the holder may not exist.
        pub(crate) fn if_free(&self) -> Option<SpinGuard<'_, T>> {
            (!self.is_taken.swap(true, Ordering::Acquire)).then(|| self.guard())
        }

        /// The caller has taken the lock.
        #[inline]
        fn guard(&self) -> SpinGuard<'_, T> {
            SpinGuard { lock: self, _held: Held::count(), _here: PhantomData }
        }

        #[cold]
        fn wait(&self) {
            let mut turns = 0;
            loop {
                for _ in 0..LOOKS {
                    if !self.is_taken.load(Ordering::Relaxed) {
                        break;
                    }
                    hint::spin_loop();
                }
                if !self.is_taken.swap(true, Ordering::Acquire) {
                    return;
                }
                if turns < YIELDS {
                    thread::yield_now();
                } else {
                    thread::sleep(REST);
                }
                turns += 1;
            }
        }
    }

    impl<T> Deref for SpinGuard<'_, T> {
        type Target = T;

        #[inline]
        fn deref(&self) -> &T {
            // SAFETY: while this guard exists no other one does.
            unsafe { &*self.lock.value.get() }
        }
    }

    impl<T> DerefMut for SpinGuard<'_, T> {
        #[inline]
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: while this guard exists no other one does, and it is borrowed once.
            unsafe { &mut *self.lock.value.get() }
        }
    }

    impl<T> Drop for SpinGuard<'_, T> {
        #[inline]
        fn drop(&mut self) {
            self.lock.is_taken.store(false, Ordering::Release);
        }
    }
}

#[cfg(feature = "shuttle")]
mod mutex {
    use super::super::{Guard, Lock};

    pub(crate) type SpinGuard<'a, T> = Guard<'a, T>;
    pub(crate) type SpinLock<T> = Lock<T>;
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    use super::super::assert_none_held;
    use super::*;

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        // Miri takes its time, and tries what weakly ordered memory would show.
        const EACH: usize = if cfg!(miri) { 50 } else { 20_000 };
        let lock = SpinLock::new((0, 0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        let mut both = lock.lock();
                        both.0 += 1;
                        both.1 += 1;
                        assert_eq!(both.0, both.1);
                    }
                    assert_none_held("after the last");
                });
            }
        });
        assert_eq!(*lock.lock(), (4 * EACH, 4 * EACH));
    }

    #[test]
    fn who_does_not_wait_is_told_and_a_panic_frees_it() {
        let lock = SpinLock::new(0);
        {
            let guard = lock.lock();
            assert!(lock.if_free().is_none());
            assert!(catch_unwind(|| assert_none_held("pinning")).is_err());
            drop(guard);
        }
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            *lock.lock() = 1;
            let _guard = lock.lock();
            panic!("with the lock held");
        }));
        assert!(panicked.is_err());
        assert_none_held("nothing");
        assert_eq!(lock.if_free().map(|it| *it), Some(1));
    }
}
