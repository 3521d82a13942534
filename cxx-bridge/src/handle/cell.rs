//! The provisioner behind its lock, and whether it may still be used.
//!
//! Knows nothing of memory. Invariants: a panic retires the engine to pass-through and is caught here
//! (I9); a provisioner in which a panic occurred is never used again; a child takes no lock here that a
//! thread of its parent may hold.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pinbuddy_core::{Misuse, Provisioner};

use crate::backing::Control;
use crate::lock::{Guard, Lock};
use crate::log;
use crate::sync::{AtomicBool, Condvar};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct EngineCell {
    provisioner: Lock<Provisioner>,
    /// Notified when a pin or the worker has ended, the cache was cleared, or the process ends.
    changed: Condvar,
    /// Time 0 of the provisioner's clock.
    since: Instant,
    retired: AtomicBool,
    /// The process ends.
    closed: AtomicBool,
    child: AtomicBool,
    /// For tests: the next request panics under the lock.
    #[cfg(debug_assertions)]
    broken: AtomicBool,
}

/// A thread that waits for a change looks again after this time, in case it missed one.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How long the end of the process waits for a pin under way.
pub(super) const LAST_PIN: Duration = Duration::from_secs(10);

/// Pins of a request, or of regions that a plan asks for: only the end of the process stops them.
impl Control for EngineCell {
    fn go_on(&self) -> bool {
        !self.is_closed()
    }
}

impl EngineCell {
    pub(super) fn new(provisioner: Provisioner) -> Self {
        Self {
            provisioner: Lock::new(provisioner),
            changed: Condvar::new(),
            since: Instant::now(),
            retired: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            child: AtomicBool::new(false),
            #[cfg(debug_assertions)]
            broken: AtomicBool::new(false),
        }
    }

    /// The provisioner under its lock; `None` once the engine is off, or if a panic has poisoned the lock.
    #[inline]
    pub(super) fn provisioner(&self) -> Option<Guard<'_, Provisioner>> {
        if self.is_off() {
            return None;
        }
        self.provisioner.unless_poisoned()
    }

    /// As [`Self::provisioner`]; panics if a test asked for that.
    #[inline]
    pub(super) fn provisioner_to_ask(&self) -> Option<Guard<'_, Provisioner>> {
        let provisioner = self.provisioner()?;
        #[cfg(debug_assertions)]
        assert!(!self.broken.load(Ordering::Relaxed), "a test had the engine break down");
        Some(provisioner)
    }

    /// The provisioner under its lock, also once retired, for reporting that something has ended; `None` if
    /// a panic has poisoned the lock, and in a child.
    pub(super) fn even_if_retired(&self) -> Option<Guard<'_, Provisioner>> {
        if self.is_child() {
            return None;
        }
        self.provisioner.unless_poisoned()
    }

    /// The time on the provisioner's clock.
    pub(super) fn now(&self) -> Duration {
        self.since.elapsed()
    }
    pub(super) fn at(&self, time: Instant) -> Duration {
        time - self.since
    }

    /// Sleeps until something changes, or until the time `until`; `None` once the engine is off.
    pub(super) fn sleep<'a>(
        &'a self,
        provisioner: Guard<'a, Provisioner>,
        until: Option<Duration>,
    ) -> Option<Guard<'a, Provisioner>> {
        let until = until.map_or_else(|| Instant::now() + LOOK_AGAIN, |until| self.since + until);
        let provisioner = provisioner.wait_until(&self.changed, until)?;
        (!self.is_off()).then_some(provisioner)
    }

    /// Wakes all sleeping threads.
    pub(super) fn has_changed(&self) {
        self.changed.notify_all();
    }

    /// Runs `act`; a panic retires the engine and returns `None`.
    #[inline]
    pub(super) fn guarded<T>(&self, act: impl FnOnce() -> Option<T>) -> Option<T> {
        // Unwind safety: state that a panic leaves half changed is behind the provisioner's lock, which is poisoned then
        // and never taken again; or it is a plan's, which grants nothing any more once the engine is off.
        catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| {
            self.retire("it panicked");
            None
        })
    }

    #[inline]
    pub(super) fn unless_misused(&self, act: impl FnOnce(&mut Provisioner) -> Result<(), Misuse>) {
        self.guarded(|| {
            let misuse = act(&mut *self.provisioner()?).err()?;
            self.retire(&misuse.to_string());
            Some(())
        });
    }

    /// Leaves everything from now on to upstream's path. Live blocks keep their memory, which is never
    /// unpinned.
    #[cold]
    pub(super) fn retire(&self, why: &str) {
        if !self.retired.swap(true, Ordering::Relaxed) {
            self.has_changed();
            log::warn(|| format!("the engine is retired: {why}. PyTorch's own allocator serves from now on"));
        }
    }

    /// The process is about to end: no pin begins, and those under way are waited for until a time. They
    /// stop after their current call of the kernel or the driver.
    pub(super) fn close(&self, until: Instant) {
        if self.is_child() {
            return;
        }
        self.closed.store(true, Ordering::Relaxed);
        let mut awake = self.even_if_retired();
        if let Some(provisioner) = &mut awake {
            provisioner.close();
        }
        self.has_changed();
        while let Some(provisioner) = awake {
            let going_on = provisioner.is_pinning() || provisioner.is_at_work();
            if !going_on || Instant::now() >= until {
                break;
            }
            // Polled as well: threads that would notify may have been ended.
            let soon = Instant::now() + Duration::from_millis(1);
            awake = provisioner.wait_until(&self.changed, soon);
        }
    }

    /// Called in a child: turns the engine off if it `was_used` in the parent, or if a thread of the parent held the lock
    /// at the fork or was at work: it is not in the child, which would wait for it. Returns whether it is off.
    pub(super) fn enter_child(&self, was_used: bool) -> bool {
        let rests = |it: Guard<'_, Provisioner>| !it.is_at_work() && !it.is_pinning();
        let off = was_used || !self.provisioner.if_free().is_some_and(rests);
        self.child.store(off, Ordering::Relaxed);
        off
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
    pub(super) fn is_child(&self) -> bool {
        self.child.load(Ordering::Relaxed)
    }
    #[inline]
    pub(super) fn is_off(&self) -> bool {
        self.retired.load(Ordering::Relaxed) || self.is_child()
    }

    /// Has the next request panic in the engine, as a defect of ours would: for tests, in a debug
    /// build only.
    #[cfg(debug_assertions)]
    pub(super) fn break_down(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }
}
