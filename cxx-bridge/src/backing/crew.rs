//! Threads that help one thread with work of which each may do a part.
//!
//! A helper that has not begun when the work is done is not waited for: on a busy machine a new thread may wait for a
//! processor much longer than the work takes. That is what a scope of the standard library's does. Knows no memory.
//! Invariants: the work outlives every helper's use of it; a helper's panic is the caller's.

#![allow(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::sync;

/// What helpers share with the thread that they help.
#[derive(Debug)]
struct Gate {
    /// `None` once the work is over. Held for reading by each helper that works.
    work: RwLock<Option<Work>>,
    panicked: AtomicBool,
}

/// A closure without its lifetime.
#[derive(Clone, Copy, Debug)]
struct Work {
    closure: *const (),
    call: unsafe fn(*const ()),
}

// SAFETY: the closure is `Sync` (see `Work::of`), so that any thread may call it.
unsafe impl Send for Work {}
// SAFETY: the same.
unsafe impl Sync for Work {}

impl Work {
    fn of<W: Fn() + Sync>(work: &W) -> Self {
        /// # Safety
        ///
        /// `closure` points to a `W` that lives.
        unsafe fn call<W: Fn()>(closure: *const ()) {
            // SAFETY: as this function asks for.
            let work = unsafe { &*closure.cast::<W>() };
            work();
        }
        Self { closure: ptr::from_ref(work).cast(), call: call::<W> }
    }
}

impl Gate {
    /// # Safety
    ///
    /// `work` lives until [`Self::close`] has returned.
    unsafe fn open<W: Fn() + Sync>(work: &W) -> Arc<Self> {
        Arc::new(Self { work: RwLock::new(Some(Work::of(work))), panicked: AtomicBool::new(false) })
    }

    /// A helper's whole life.
    fn help(&self) {
        let held = self.work.read().unwrap_or_else(PoisonError::into_inner);
        let Some(Work { closure, call }) = *held else {
            return;
        };
        // SAFETY: the closure lives until `close` returns, which waits for `held`.
        let done = catch_unwind(AssertUnwindSafe(|| unsafe { call(closure) }));
        if done.is_err() {
            self.panicked.store(true, Ordering::Relaxed);
        }
    }

    /// From now on nobody begins; waits for those that have.
    fn close(&self) {
        *self.work.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Closes the gate when dropped: also if the work panics here.
struct Closing<'a>(&'a Gate);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Runs `work` here and in up to `helpers` other threads of this name at once, and returns when all that have begun
/// are done. If no thread can be started, this one does it alone.
///
/// # Panics
///
/// If `work` panics, here or there.
pub(crate) fn run<W: Fn() + Sync>(helpers: usize, name: &str, work: &W) {
    // SAFETY: it is closed before this function returns or unwinds.
    let gate = unsafe { Gate::open(work) };
    let closing = Closing(&gate);
    for _ in 0..helpers {
        let gate = Arc::clone(&gate);
        if sync::start(name, move || gate.help()).is_err() {
            break;
        }
    }
    work();
    drop(closing);
    assert!(!gate.panicked.load(Ordering::Relaxed), "a helper panicked");
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;
    use crate::sync::Dial;

    #[test]
    fn all_that_begin_do_their_part() {
        let (left, done) = (Dial::at(10_000), AtomicUsize::new(0));
        run(3, "test", &|| {
            while left.spend() {
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert_eq!(done.into_inner(), 10_000);
    }

    #[test]
    fn who_comes_late_does_nothing_and_who_has_begun_is_waited_for() {
        let (begun, may_end) = (Barrier::new(2), Barrier::new(2));
        let (calls, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            calls.fetch_add(1, Ordering::Relaxed);
            begun.wait();
            may_end.wait();
            over.store(true, Ordering::Relaxed);
        };
        // SAFETY: it is closed below.
        let gate = unsafe { Gate::open(&work) };
        let helper = thread::spawn({
            let gate = Arc::clone(&gate);
            move || gate.help()
        });
        begun.wait();
        thread::scope(|scope| {
            let closing = scope.spawn(|| {
                gate.close();
                assert!(over.load(Ordering::Relaxed), "it was not waited for");
            });
            may_end.wait();
            closing.join().unwrap();
        });
        helper.join().unwrap();
        gate.help();
        assert_eq!(calls.into_inner(), 1, "the gate is closed");
    }

    #[test]
    fn a_panic_is_the_callers_wherever_it_happens() {
        let first = AtomicBool::new(true);
        let begun = Barrier::new(2);
        let helpers = || {
            run(1, "test", &|| {
                begun.wait();
                assert!(!first.swap(false, Ordering::Relaxed), "on purpose");
            });
        };
        assert!(catch_unwind(AssertUnwindSafe(helpers)).is_err());
    }
}
