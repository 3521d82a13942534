//! The background worker, like the bridge's thread: it fills slowly, pauses while a request pins, and
//! can be stopped until the driver has its region.

use std::time::Duration;

use pinbuddy_core::{GoOn, Permit, Refusal, Took, Work};

use super::machine::at_pace;
use super::{NEVER, Nanos, World};

/// The worker, hired or not.
#[derive(Debug)]
pub(super) struct Worker {
    /// When it takes its next step.
    pub(super) at: Nanos,
    doing: Doing,
    /// A request waits for all of its work: it is as fast as a request.
    in_front: bool,
}

#[derive(Debug)]
enum Doing {
    Nothing,
    Asking,
    Sleeping,
    /// Since when, or `None` while it pauses; and how much was left then.
    Filling(Permit, Option<Nanos>, Nanos),
    Registering(Permit, Took),
}

impl Default for Worker {
    fn default() -> Self {
        Self { at: NEVER, doing: Doing::Nothing, in_front: false }
    }
}

impl World {
    /// A request does the worker's work and waits for the end.
    pub(super) fn work_in_front(&mut self) {
        if self.provisioner.hire() {
            self.worker.in_front = true;
            self.set(Doing::Asking, self.now);
        }
    }

    /// Hires, wakes, pauses or stops the worker, after anything has happened.
    pub(super) fn tend_worker(&mut self) {
        let now = self.now;
        if matches!(self.worker.doing, Doing::Nothing) {
            if self.provisioner.hire() {
                self.worker.in_front = false;
                self.set(Doing::Asking, now);
            }
            return;
        }
        match std::mem::replace(&mut self.worker.doing, Doing::Nothing) {
            Doing::Filling(permit, since, left) => match self.provisioner.go_on(permit.id) {
                GoOn::Stop => {
                    self.taken -= permit.bytes as u64;
                    self.provisioner.refused(permit.id, Refusal::Stopped);
                    self.changed();
                    self.set(Doing::Asking, now);
                }
                GoOn::Wait => {
                    let left = left - since.map_or(0, |since| now - since).min(left);
                    self.set(Doing::Filling(permit, None, left), NEVER);
                }
                GoOn::Yes => {
                    let left = left - since.map_or(0, |since| now - since).min(left);
                    self.set(Doing::Filling(permit, Some(now), left), now + left);
                }
            },
            other => self.worker.doing = other,
        }
    }

    /// A pin has ended: the worker asks again.
    pub(super) fn wake_worker(&mut self) {
        if matches!(self.worker.doing, Doing::Sleeping) {
            self.set(Doing::Asking, self.now);
        }
    }

    /// The worker's next step.
    pub(super) fn poll_worker(&mut self) {
        match std::mem::replace(&mut self.worker.doing, Doing::Nothing) {
            Doing::Nothing | Doing::Sleeping => self.worker.at = NEVER,
            Doing::Asking => self.ask_for_work(),
            Doing::Filling(permit, ..) => {
                let (began, bytes) = (self.now, permit.bytes as u64);
                let at = self.queue(at_pace(self.machine.register, bytes));
                let took = Took {
                    filling: Duration::from_nanos(self.fill(bytes)),
                    registering: Duration::from_nanos(at - began),
                };
                self.set(Doing::Registering(permit, took), at);
            }
            Doing::Registering(permit, took) => {
                let block = self.pinned(&permit, took);
                debug_assert!(block.is_none(), "the worker has no request");
                self.set(Doing::Asking, self.now);
            }
        }
    }

    fn ask_for_work(&mut self) {
        let (now, left) = (self.time(), self.left());
        match self.provisioner.work(now, left) {
            Work::Pin(mut permit) => {
                let unpin = self.unpin(std::mem::take(&mut permit.unpin));
                self.taken += permit.bytes as u64;
                let left = unpin + self.fill(permit.bytes as u64);
                let filling = Doing::Filling(permit, Some(self.now), left);
                self.set(filling, self.now + left);
            }
            Work::Unpin(idle) => {
                let takes = self.unpin(idle);
                self.set(Doing::Asking, self.now + takes);
            }
            Work::Wait => self.set(Doing::Sleeping, NEVER),
            Work::Done => {
                self.set(Doing::Nothing, NEVER);
                self.changed();
            }
        }
    }

    fn fill(&self, bytes: u64) -> Nanos {
        let behind = match self.worker.in_front {
            true => 1,
            false => self.machine.behind,
        };
        at_pace(self.machine.fill * Nanos::from(behind), bytes)
    }

    fn set(&mut self, doing: Doing, at: Nanos) {
        self.worker.doing = doing;
        self.worker.at = at;
    }
}
