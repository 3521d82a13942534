//! The end of the process, and the beginning of a forked child.
//!
//! Invariants: once closed, no pin begins, no refusal is told, and no thread comes back from a wait
//! into what is gone; a child takes no lock that a thread of its parent's may hold.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pinbuddy_core::Provisioner;

use super::{Grant, Handle};
use crate::backing::Backing;
use crate::lock::Guard;

/// How long the end of the process waits for a pin that is going on.
const LAST_PIN: Duration = Duration::from_secs(10);

impl<B: Backing> Handle<B> {
    /// The process is about to end: nothing more is pinned, and pins that are going on are waited
    /// for. They end with what they have in the kernel's hands or the driver's.
    pub fn close(&self) {
        if self.forked.load(Ordering::Relaxed) {
            return;
        }
        self.closed.store(true, Ordering::Relaxed);
        let until = Instant::now() + LAST_PIN;
        let mut awake = self.even_if_retired();
        if let Some(provisioner) = &mut awake {
            provisioner.close();
        }
        self.changed.notify_all();
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

    /// What a request that took its time is answered, unless the process ends meanwhile: threads
    /// that come back from a wait while exit handlers run meet an interpreter and a driver that are
    /// gone. They stay here, and end with the process; but not for ever, should somebody wait for
    /// them at the very end.
    pub(super) fn unless_closed(&self, grant: Option<Grant>) -> Option<Grant> {
        if self.is_closed() {
            std::thread::sleep(LAST_PIN);
        }
        grant
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// This is a forked child: the pins are the parent's, and its locks may be held by threads that
    /// do not exist here. From now on nothing is served, released or locked. Unless the parent never
    /// pinned, and no thread of its had the lock at that moment: then the child's engine is as good as
    /// new. Whether it is off.
    pub fn forked(&self) -> bool {
        let used = self.used.load(Ordering::Relaxed) || self.provisioner.if_free().is_none();
        self.forked.store(used, Ordering::Relaxed);
        if used {
            self.backing.forked();
        }
        used
    }

    /// This process has made a child by fork, which cannot read what is hidden from it: said once, where
    /// tensors have some of that. `flush` has whoever caches freed blocks release them.
    pub fn has_forked(&self, flush: impl FnOnce()) {
        if self.forked.load(Ordering::Relaxed) || !self.used.load(Ordering::Relaxed) {
            return;
        }
        if self.notices.has_told_of_children() || !self.backing.hides() {
            return;
        }
        flush();
        let Some(stats) = self.stats() else { return };
        let (blocks, bytes) = (stats.active_blocks.current, stats.active_bytes.current);
        if blocks > 0 {
            self.say_hidden(blocks, bytes);
        }
    }

    /// The provisioner under its lock, for who reports that something has ended; nothing where a
    /// panic left it in doubt, and in a forked child.
    pub(super) fn even_if_retired(&self) -> Option<Guard<'_, Provisioner>> {
        if self.forked.load(Ordering::Relaxed) {
            return None;
        }
        self.provisioner.unless_poisoned()
    }
}
