//! The worker: a thread that pins ahead of requests, as the provisioner says.
//!
//! If the program waits for the whole warm-up, the worker is a thread of normal priority, or the
//! waiting thread itself. Knows neither what is pinned ahead nor how much. Invariants: there is at
//! most one worker; one that ends, by a panic too, reports it.

use std::time::Instant;

use pinbuddy_core::{GoOn, PermitId, WarmUp, Work};

use super::Handle;
use super::cell::{EngineCell, LAST_PIN};
use crate::backing::{Control, Device, Memory, background};
use crate::log::{self, Bytes};
use crate::sync;

/// A pin ahead of requests, which the provisioner may pause or stop.
#[derive(Debug)]
struct Ahead<'a> {
    cell: &'a EngineCell,
    id: PermitId,
}

impl Control for Ahead<'_> {
    fn go_on(&self) -> bool {
        let mut awake = self.cell.provisioner();
        while let Some(provisioner) = awake {
            match provisioner.go_on(self.id) {
                GoOn::Yes => return true,
                GoOn::Stop => return false,
                GoOn::Wait => awake = self.cell.sleep(provisioner, None),
            }
        }
        false
    }
}

/// One worker's time, from hiring on; dropping it reports the end.
#[derive(Debug)]
pub(super) struct Shift<'a> {
    cell: &'a EngineCell,
    /// The provisioner has said that there is nothing left to do.
    over: bool,
}

impl<'a> Shift<'a> {
    pub(super) fn of(cell: &'a EngineCell) -> Self {
        let over = false;
        Self { cell, over }
    }
}

impl Drop for Shift<'_> {
    fn drop(&mut self) {
        if !self.over
            && let Some(mut provisioner) = self.cell.even_if_retired()
        {
            provisioner.dismiss();
        }
        self.cell.has_changed();
    }
}

impl<M: Memory> Handle<M> {
    /// Starts pinning the missing segments in a thread of its own, whatever the mode; with `wait`,
    /// returns when that has ended. False if the engine is off or there is no device.
    pub fn warm_up(&'static self, wait: bool) -> bool {
        self.cell
            .guarded(|| {
                drop(self.cell.provisioner()?);
                if !self.pinner.memory.available() {
                    return None;
                }
                self.watch_idle();
                self.warm_up_plan(wait);
                let _waiting = wait.then(background::wait);
                let home = self.home_here();
                let hired = {
                    let mut provisioner = self.cell.provisioner()?;
                    provisioner.urge(home);
                    provisioner.hire()
                };
                if hired {
                    self.work_in_a_thread(!wait);
                }
                if wait {
                    self.wait_for_the_worker();
                }
                Some(())
            })
            .is_some()
    }

    /// Starts a worker, if there is work and no worker.
    pub(super) fn hire(&'static self) {
        let hired = self.cell.provisioner().is_some_and(|mut it| it.hire());
        if hired {
            self.hired();
        }
    }

    /// The provisioner has hired: starts the thread.
    #[cold]
    pub(super) fn hired(&'static self) {
        self.work_in_a_thread(self.settings.warm_up != WarmUp::Sync);
    }

    /// Does the worker's work on this thread, at full speed; if there is a worker already, sleeps until
    /// something changes.
    pub(super) fn warm_up_here(&self) {
        let _waiting = background::wait();
        let home = self.home_here();
        let Some(mut provisioner) = self.cell.provisioner() else {
            return;
        };
        provisioner.urge(home);
        if provisioner.hire() {
            drop(provisioner);
            self.work(&mut Shift::of(&self.cell), self.pinner.memory.device());
        } else {
            drop(self.cell.sleep(provisioner, None));
        }
    }

    fn wait_for_the_worker(&self) {
        let mut awake = self.cell.provisioner();
        while let Some(provisioner) = awake.filter(|it| it.is_at_work()) {
            awake = self.cell.sleep(provisioner, None);
        }
    }

    /// Waits until what the worker is unpinning now is unpinned, for as long as the end of a process would. The driver may
    /// wait for kernels meanwhile. Returns those bytes.
    pub(super) fn wait_for_its_unpin(&self) -> usize {
        let _waiting = background::wait();
        let until = Instant::now() + LAST_PIN;
        let mut awake = self.cell.provisioner();
        let bytes = awake.as_ref().map_or(0, |it| it.unpinning());
        while let Some(provisioner) = awake.take_if(|it| it.unpinning() > 0) {
            if Instant::now() >= until {
                return 0;
            }
            awake = self.cell.sleep(provisioner, None);
        }
        bytes
    }

    /// The worker has unpinned what it had in hand.
    pub(super) fn has_unpinned(&self) {
        if let Some(mut provisioner) = self.cell.even_if_retired() {
            provisioner.unpinned();
        }
        self.cell.has_changed();
    }

    /// With `behind`, at low priority and with rests; else at full speed.
    fn work_in_a_thread(&'static self, behind: bool) {
        let shift = Shift::of(&self.cell);
        let device = self.pinner.memory.device();
        let work = move || {
            if behind {
                self.pinner.memory.start(device);
                background::enter();
            }
            let mut shift = shift;
            // Dropped after a panic has retired the engine, so that threads that wait see that.
            self.cell.guarded(|| {
                self.work(&mut shift, device);
                Some(())
            });
        };
        if let Err(why) = sync::start("pinbuddy-warm-up", work) {
            // Dropping the closure ended the shift. The work stays, and the next request that misses
            // tries again.
            self.once(&self.notices.no_thread, || format!("no thread for the warm-up: {why}"));
        }
    }

    /// Does the worker's work until there is none left.
    fn work(&self, shift: &mut Shift<'_>, device: Device) {
        let Some((wanted, before)) = self.begin_to_work() else {
            return;
        };
        let segment = self.settings.segment_bytes;
        let after = loop {
            let left = self.pinner.left(segment, Instant::now());
            let Some(mut provisioner) = self.cell.provisioner() else {
                return;
            };
            match provisioner.work(self.cell.now(), left) {
                Work::Pin(permit) => {
                    drop(provisioner);
                    let (bytes, id) = (permit.bytes, permit.id);
                    let cell = &self.cell;
                    let control = Ahead { cell, id };
                    if let Err(refused) = self.carry_out(permit, device, &control) {
                        self.say_refused_ahead(bytes, &refused);
                    }
                }
                Work::Unpin(idle) => {
                    drop(provisioner);
                    self.unpin_all(idle);
                    self.has_unpinned();
                }
                Work::Wait => drop(self.cell.sleep(provisioner, None)),
                Work::Done => {
                    shift.over = true;
                    break provisioner.progress().pinned;
                }
            }
        };
        if wanted > 0 {
            log::info(|| {
                let (bytes, pinned) = (Bytes(segment as u64), after - before);
                format!("the warm-up has pinned {pinned} of {wanted} blocks of {bytes}")
            });
        }
    }

    /// Cuts the deficit to what the budget allows; returns the deficit before, and how many segments
    /// were pinned before.
    fn begin_to_work(&self) -> Option<(usize, usize)> {
        let most = self.pinner.room_for_regions_of(self.settings.segment_bytes);
        let (wanted, before) = {
            let mut provisioner = self.cell.provisioner()?;
            (provisioner.limit(most), provisioner.progress().pinned)
        };
        // A number that nobody has set is as many as there may be, unless that is none.
        if most < wanted && (most == 0 || self.settings.count.is_some()) {
            self.say_shrunk(most, wanted);
        }
        Some((wanted, before))
    }
}
