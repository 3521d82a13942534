//! The worker's side: hired once, it does what it is told, and may die in the middle.

use super::parties::{By, Parties, Pinning};
use pinbuddy_core::{Refusal, Work};

impl Parties {
    pub(super) fn hire(&mut self) {
        if self.provisioner.hire() {
            assert!(!self.works, "two workers");
            self.works = true;
        }
    }

    pub(super) fn step_the_worker(&mut self) {
        if !self.works {
            self.hire();
            return;
        }
        if self.pinning.iter().any(|it| it.by == By::Worker) {
            return;
        }
        let left = self.left();
        match self.provisioner.work(self.now, left) {
            Work::Pin(permit) => {
                assert!(!self.a_request_pins(), "the worker begins beside a request");
                assert!(permit.bytes <= left, "{permit:?} where {left} bytes are left");
                self.begin_pin(permit, By::Worker);
            }
            Work::Unpin(idle) => {
                assert!(!idle.is_empty(), "nothing is to be unpinned");
                self.world.unpin_all(&idle);
                self.provisioner.unpinned();
            }
            Work::Wait => assert!(self.a_request_pins(), "the worker waits for nobody"),
            Work::Done => self.works = false,
        }
    }

    /// A panic, say: what it pinned came to nothing.
    pub(super) fn worker_dies(&mut self) {
        if self.works {
            if let Some(n) = self.pinning.iter().position(|it| it.by == By::Worker) {
                let Pinning { permit, by, .. } = self.pinning.swap_remove(n);
                self.refuse(permit, by, Refusal::Stopped);
            }
            self.provisioner.dismiss();
            self.works = false;
        }
    }
}
