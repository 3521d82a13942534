//! Memory that nobody uses goes back by itself: a thread looks now and then, and unpins as the worker does.
//!
//! The provisioner says how often, and which of its regions go; a plan's are in `planned::idle`. Knows no sizes and no
//! times. Invariants: one such thread; it sleeps between two looks, and the end of the process wakes it; while it unpins it is
//! the worker, so that the end waits for it, and it pins nothing; a child of a process that has pinned anything has no such
//! thread.

use std::sync::atomic::Ordering;
use std::time::Duration;

use pinbuddy_core::Settings;

use super::Handle;
use super::worker::Shift;
use crate::backing::{Memory, background};
use crate::sync;

/// A plan's memory goes back so soon after the program has emptied its cache.
pub(super) const AFTER_CLEAR: Duration = Duration::from_secs(5);

impl<M: Memory> Handle<M> {
    /// Something is pinned, or about to be: from now on idle memory is looked for, where the settings say so.
    #[cold]
    pub(super) fn watch_idle(&'static self) {
        let engine = self.settings.idle.map(Settings::looks_each);
        let sleeps = self.config.plan_idle().filter(|_| self.planned.is_some());
        let plan = sleeps.map(|after| Settings::looks_each(after.min(AFTER_CLEAR)));
        let Some(interval) = engine.into_iter().chain(plan).min() else {
            return;
        };
        if self.watches.swap(true, Ordering::Relaxed) {
            return;
        }
        let watch = move || {
            background::enter();
            self.cell.guarded(|| {
                while self.sleeps(interval)? {
                    self.return_idle();
                }
                Some(())
            });
        };
        let started = sync::start("pinbuddy-idle", watch).is_ok();
        self.watches.store(started, Ordering::Relaxed);
    }

    /// Returns true after so long, and false once the process ends.
    fn sleeps(&self, interval: Duration) -> Option<bool> {
        let until = self.cell.now() + interval;
        let mut awake = self.cell.provisioner()?;
        while !self.cell.is_closed() && self.cell.now() < until {
            awake = self.cell.sleep(awake, Some(until))?;
        }
        Some(!self.cell.is_closed())
    }

    /// Unpins what nobody has used for the idle time, unless a worker is busy: then memory is in demand.
    pub fn return_idle(&'static self) {
        let returned = self.cell.guarded(|| {
            if !self.cell.provisioner()?.begin_shift() {
                return None;
            }
            let _shift = Shift::of(&self.cell);
            // What streams are done with, and what thread caches have, is idle as well.
            self.completions.reap_behind();
            self.cell.provisioner()?.let_go_unused(self.cell.now());
            let mut any = self.return_idle_plan();
            while !self.cell.is_closed() {
                let leaving = self.cell.provisioner()?.next_leaving();
                if leaving.is_empty() {
                    break;
                }
                self.unpin_all(leaving);
                self.has_unpinned();
                any = true;
            }
            any.then_some(())
        });
        // A request may have asked for a worker meanwhile.
        if returned.is_some() {
            self.hire();
        }
    }
}
