//! The end of the process, and the beginning of a child.
//!
//! Invariants: once closed, no pin begins, no refusal is reported, and no thread returns from a wait into
//! an interpreter or a driver that is gone; a child takes no lock that a thread of its parent may hold.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::Handle;
use super::cell::LAST_PIN;
use super::planned::Planned;
use crate::backing::Memory;
use crate::sync::thread;

impl<M: Memory> Handle<M> {
    /// The process is about to end: nothing more is pinned, and pins under way are waited for, for ten seconds in all.
    pub fn close(&self) {
        if !self.cell.is_child() {
            self.say_misfit_at_the_end();
        }
        let until = *self.ends.get_or_init(|| Instant::now() + LAST_PIN);
        self.cell.close(until);
        if !self.cell.is_child() {
            self.wait_for_plan_to_stop(until);
        }
    }

    /// Called after a wait. A thread that returned from it while exit handlers run would meet an interpreter
    /// and a driver that are gone. It stays here and ends with the process; not for ever, in case it is
    /// waited for at the very end.
    pub(super) fn stay_if_closed(&self) {
        if self.cell.is_closed() {
            thread::sleep(LAST_PIN);
        }
    }

    /// Called in a child: the pins are the parent's, and threads that do not exist here may hold its locks.
    /// From now on nothing is served, released or locked. If the parent never pinned and no thread held the
    /// lock at the fork, the child's engine works like a new one. Returns whether the engine is off.
    pub fn enter_child(&self) -> bool {
        let busy = self.planned.as_ref().is_some_and(Planned::is_busy);
        let off = self.cell.enter_child(self.pinner.was_used() || busy);
        if off {
            self.pinner.memory.enter_child();
        } else {
            // No thread waits here.
            self.early.store(false, Ordering::Relaxed);
            self.watches.store(false, Ordering::Relaxed);
        }
        off
    }

    /// Called in the parent after a fork: says once that the child cannot read hidden regions, if tensors
    /// have any. `flush` releases cached blocks.
    pub fn made_child(&self, flush: impl FnOnce()) {
        if self.cell.is_child() || !self.pinner.was_used() {
            return;
        }
        if self.notices.has_told_of_children() || !self.pinner.memory.hides() {
            return;
        }
        flush();
        let Some(stats) = self.stats() else { return };
        let (blocks, bytes) = (stats.active_blocks.current, stats.active_bytes.current);
        if blocks > 0 {
            self.say_hidden(blocks, bytes);
        }
    }
}
