//! Memory that nobody uses goes back by itself: a thread looks now and then, and unpins as the worker does.
//!
//! The provisioner says how often, and which of its regions go; a plan's are in `planned::idle`. Knows no sizes and no
//! times. Invariants: one such thread; it sleeps between two looks, and the end of the process wakes it; while it unpins it is
//! the worker, so that the end waits for it; a child of a process that has pinned anything has no such thread.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Handle;
use super::worker::Shift;
use crate::backing::{Memory, background};
use crate::sync;

/// A plan's memory goes back so soon after the program has emptied its cache, and is looked at as often.
pub(super) const AFTER_CLEAR: Duration = Duration::from_secs(5);

impl<M: Memory> Handle<M> {
    /// Something is pinned, or about to be: from now on idle memory is looked for, where the settings say so.
    #[cold]
    pub(super) fn watch_idle(&'static self) {
        let Some(idle) = self.settings.idle else {
            return;
        };
        if self.watches.swap(true, Ordering::Relaxed) {
            return;
        }
        let interval = match self.planned {
            Some(_) => idle.interval().min(AFTER_CLEAR / 2),
            None => idle.interval(),
        };
        let device = self.pinner.memory.device();
        let watch = move || {
            self.pinner.memory.start(device);
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
    pub fn return_idle(&self) {
        self.cell.guarded(|| {
            if !self.cell.provisioner()?.begin_shift() {
                return None;
            }
            let mut shift = Shift::of(&self.cell);
            // What streams are done with, and what thread caches have, is idle as well.
            self.completions.reap();
            self.cell.provisioner()?.let_go_unused(self.cell.now());
            self.return_idle_plan();
            self.work_until_done(&mut shift, self.pinner.memory.device());
            Some(())
        });
    }
}
