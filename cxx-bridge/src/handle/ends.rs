//! The end of the process, and the beginning of a forked child.
//!
//! Invariants: once closed, no pin begins, no refusal is told, and no thread comes back from a wait
//! into what is gone; a child takes no lock that a thread of its parent's may hold.

use super::cell::LAST_PIN;
use super::{Grant, Handle};
use crate::backing::Memory;

impl<M: Memory> Handle<M> {
    /// The process is about to end: nothing more is pinned, and pins that are going on are waited
    /// for.
    pub fn close(&self) {
        self.cell.close();
    }

    /// What a request that took its time is answered, unless the process ends meanwhile: threads
    /// that come back from a wait while exit handlers run meet an interpreter and a driver that are
    /// gone. They stay here, and end with the process; but not for ever, should somebody wait for
    /// them at the very end.
    pub(super) fn unless_closed(&self, grant: Option<Grant>) -> Option<Grant> {
        if self.cell.is_closed() {
            std::thread::sleep(LAST_PIN);
        }
        grant
    }

    /// This is a forked child: the pins are the parent's, and its locks may be held by threads that
    /// do not exist here. From now on nothing is served, released or locked. Unless the parent never
    /// pinned, and no thread of its had the lock at that moment: then the child's engine is as good as
    /// new. Whether it is off.
    pub fn forked(&self) -> bool {
        let off = self.cell.fork(self.pinner.was_used());
        if off {
            self.pinner.memory.forked();
        }
        off
    }

    /// This process has made a child by fork, which cannot read what is hidden from it: said once, where
    /// tensors have some of that. `flush` has whoever caches freed blocks release them.
    pub fn has_forked(&self, flush: impl FnOnce()) {
        if self.cell.is_forked() || !self.pinner.was_used() {
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
