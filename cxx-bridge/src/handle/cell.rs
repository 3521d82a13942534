//! The provisioner behind its lock, and whether it may still be asked.
//!
//! Knows nothing of memory. Invariants: a panic retires the engine to pass-through and goes no further
//! (I9); a provisioner that a panic left in doubt is never asked again; in a forked child nothing here
//! takes a lock that a thread of the parent's may hold.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Condvar;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pinbuddy_core::{Misuse, Provisioner, Settings};

use crate::lock::{Guard, Lock};
use crate::log;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct EngineCell {
    provisioner: Lock<Provisioner>,
    /// With that lock: a pin has ended, the worker has, the cache was cleared, or all is over.
    changed: Condvar,
    /// The provisioner's clock starts here.
    since: Instant,
    retired: AtomicBool,
    /// The process ends.
    closed: AtomicBool,
    forked: AtomicBool,
    /// For tests: the next request panics under the lock.
    #[cfg(debug_assertions)]
    broken: AtomicBool,
}

/// Who sleeps only until something changes looks again after this time, whatever was missed.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How long the end of the process waits for a pin that is going on.
pub(super) const LAST_PIN: Duration = Duration::from_secs(10);

impl EngineCell {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            provisioner: Lock::new(Provisioner::new(settings)),
            changed: Condvar::new(),
            since: Instant::now(),
            retired: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            forked: AtomicBool::new(false),
            #[cfg(debug_assertions)]
            broken: AtomicBool::new(false),
        }
    }

    /// The provisioner under its lock, or nothing once it is off: a lock poisoned by a panic counts,
    /// since what the provisioner knew is then in doubt.
    #[inline]
    pub(super) fn provisioner(&self) -> Option<Guard<'_, Provisioner>> {
        if self.is_off() {
            return None;
        }
        self.provisioner.unless_poisoned()
    }

    /// As [`Self::provisioner`], where a test can have it break down.
    #[inline]
    pub(super) fn provisioner_to_ask(&self) -> Option<Guard<'_, Provisioner>> {
        let provisioner = self.provisioner()?;
        #[cfg(debug_assertions)]
        assert!(
            !self.broken.load(Ordering::Relaxed),
            "a test had the engine break down"
        );
        Some(provisioner)
    }

    /// The provisioner under its lock, for who reports that something has ended; nothing where a
    /// panic left it in doubt, and in a forked child.
    pub(super) fn even_if_retired(&self) -> Option<Guard<'_, Provisioner>> {
        if self.is_forked() {
            return None;
        }
        self.provisioner.unless_poisoned()
    }

    /// What the provisioner's clock shows, now and at that time.
    pub(super) fn now(&self) -> Duration {
        self.since.elapsed()
    }
    pub(super) fn at(&self, time: Instant) -> Duration {
        time - self.since
    }

    /// Sleeps until something changes, at the latest until then; nothing once the engine is off.
    pub(super) fn sleep<'a>(
        &'a self,
        provisioner: Guard<'a, Provisioner>,
        until: Option<Duration>,
    ) -> Option<Guard<'a, Provisioner>> {
        let until = until.map_or_else(|| Instant::now() + LOOK_AGAIN, |until| self.since + until);
        let provisioner = provisioner.wait_until(&self.changed, until)?;
        (!self.is_off()).then_some(provisioner)
    }

    /// Wakes all who sleep.
    pub(super) fn has_changed(&self) {
        self.changed.notify_all();
    }

    /// Runs what the allocator asked for; a panic becomes a retired engine and `None`.
    #[inline]
    pub(super) fn guarded<T>(&self, act: impl FnOnce() -> Option<T>) -> Option<T> {
        // Unwind safety: what a panic leaves half done sits behind the provisioner's lock, which is
        // poisoned then and never entered again.
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

    /// Hands everything from now on to upstream's path. Blocks that live keep their memory, which
    /// is never unpinned then.
    #[cold]
    pub(super) fn retire(&self, why: &str) {
        if !self.retired.swap(true, Ordering::Relaxed) {
            self.has_changed();
            log::warn(|| {
                format!("the engine is retired: {why}. PyTorch's own allocator serves from now on")
            });
        }
    }

    /// The process is about to end: no pin begins, and those that are going on are waited for. They end
    /// with what they have in the kernel's hands or the driver's.
    pub(super) fn close(&self) {
        if self.is_forked() {
            return;
        }
        self.closed.store(true, Ordering::Relaxed);
        let until = Instant::now() + LAST_PIN;
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
            // Polled as well: threads that would say that they are done may have been ended.
            let soon = Instant::now() + Duration::from_millis(1);
            awake = provisioner.wait_until(&self.changed, soon);
        }
    }

    /// This is a forked child: the engine is off here if it `was_used` in the parent, or if a thread
    /// of the parent's had the lock at that moment. Whether it is.
    pub(super) fn fork(&self, was_used: bool) -> bool {
        let off = was_used || self.provisioner.if_free().is_none();
        self.forked.store(off, Ordering::Relaxed);
        off
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
    pub(super) fn is_forked(&self) -> bool {
        self.forked.load(Ordering::Relaxed)
    }
    #[inline]
    pub(super) fn is_off(&self) -> bool {
        self.retired.load(Ordering::Relaxed) || self.is_forked()
    }

    /// Has the next request panic in the engine, as a defect of ours would: for tests, in a debug
    /// build only.
    #[cfg(debug_assertions)]
    pub(super) fn break_down(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }
}
