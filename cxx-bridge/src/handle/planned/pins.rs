//! Pins of the regions that a plan asks for.
//!
//! One thread at a time pins them: the first that asks, which others wait for, or one of its own at low priority. Knows
//! nothing of slots but which regions are missing.

use std::time::{Duration, Instant};

use super::super::cell::LOOK_AGAIN;
use super::super::{Grant, Handle};
use super::{Phase, Planned, State};
use crate::backing::{Device, Memory, background};
use crate::lock::SpinGuard;
use crate::log::{self, Bytes};
use crate::sync;

/// The phases in which a request has the plan's regions pinned, and in which they are pinned once more.
const FIRST: &[Phase] = &[Phase::Cold];
pub(super) const AGAIN: &[Phase] = &[Phase::Cold, Phase::Returned];

/// The thread that pins the plan's regions; dropping it ends that, after a panic too. A region that was refused is asked
/// for no more; one that was returned can be.
#[derive(Debug)]
struct Pinning<'a>(&'a Planned);

impl Drop for Pinning<'_> {
    fn drop(&mut self) {
        let _waiting = self.0.waiting.lock();
        let mut state = self.0.state.lock();
        state.phase = state.after_pins(self.0);
        state.wakes &= state.phase != Phase::Done;
        drop(state);
        self.0.changed.notify_all();
    }
}

impl Planned {
    fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    /// Whether it is in one of these phases, in which nobody pins: then the caller does.
    pub(super) fn begins(&self, from: &[Phase]) -> bool {
        let mut state = self.state.lock();
        let begins = from.contains(&state.phase);
        if begins {
            state.phase = Phase::Pinning;
        }
        begins
    }

    /// Whether the region is pinned.
    fn has(&self, region: usize) -> bool {
        let state = self.state.lock();
        state.slots.missing().all(|it| it.0 != region)
    }

    /// What is missing from this region on counts as refused.
    fn give_up(&self, from: usize) {
        let mut state = self.state.lock();
        let missing = state.slots.missing().map(|it| it.0);
        state.refused = missing.filter(|it| *it >= from).collect();
    }

    /// A region is pinned, and others are to come: who waits for that one looks again.
    fn has_pinned_one(&self) {
        let _waiting = self.waiting.lock();
        self.changed.notify_all();
    }

    /// Returns once another thread has pinned regions, or a little later.
    fn wait_while_pinning(&self) {
        let waiting = self.waiting.lock();
        if self.phase() == Phase::Pinning {
            drop(waiting.wait_until(&self.changed, Instant::now() + LOOK_AGAIN));
        }
    }
}

impl<M: Memory> Handle<M> {
    /// Pins the plan's regions; with `wait`, returns when that is over.
    pub(in crate::handle) fn warm_up_plan(&'static self, wait: bool) {
        if let Some(planned) = &self.planned {
            if wait {
                self.wait_for_plan(planned, AGAIN);
            } else if planned.begins(AGAIN) {
                self.pin_plan_in_a_thread();
            }
        }
    }

    /// Waits for pins of the plan's regions, which have been told to stop, until a time.
    pub(in crate::handle) fn wait_for_plan_to_stop(&self, until: Instant) {
        let Some(planned) = &self.planned else { return };
        let mut awake = Some(planned.waiting.lock());
        while let Some(waiting) = awake.filter(|_| planned.phase() == Phase::Pinning) {
            if Instant::now() >= until {
                break;
            }
            let soon = Instant::now() + Duration::from_millis(1);
            awake = waiting.wait_until(&planned.changed, soon);
        }
    }

    /// A request before all regions are pinned. A function of its own, so that grants are not copied on the usual way.
    #[cold]
    #[inline(never)]
    pub(super) fn request_and_pin(&'static self, planned: &Planned, thread: u32, bytes: usize) -> Option<Grant> {
        let grant = self.request_or_pin(planned, thread, bytes);
        self.wake_plan(planned);
        grant
    }

    fn request_or_pin(&'static self, planned: &Planned, thread: u32, bytes: usize) -> Option<Grant> {
        let mut state = planned.state.lock();
        if !state.pins_singly() {
            drop(state);
            state = self.begin_plan(planned)?;
        }
        let grant = state.request(thread, bytes);
        if grant.is_some() || !state.pins_singly() {
            return grant;
        }
        let (slot, region) = state.slots.take_needed(bytes)?;
        if state.refused.contains(&region) {
            return None;
        }
        drop(state);
        self.pin_again(planned, region);
        if self.cell.is_closed() {
            self.stay_if_closed();
            return None;
        }
        planned.state.lock().serve_needed(slot)
    }

    /// The plan is to be pinned: by this request or a thread, or somebody does already.
    #[cold]
    fn begin_plan<'a>(&'static self, planned: &'a Planned) -> Option<SpinGuard<'a, State>> {
        self.watch_idle();
        if planned.waits {
            let waiting = self.request_waits();
            self.wait_for_plan(planned, FIRST);
            drop(waiting);
            if self.cell.is_closed() {
                self.stay_if_closed();
                return None;
            }
        } else if planned.begins(FIRST) {
            self.pin_plan_in_a_thread();
        }
        Some(planned.state.lock())
    }

    /// Pins all regions that are missing, from one of these phases on, unless another thread does; returns when that is over.
    fn wait_for_plan(&self, planned: &Planned, from: &[Phase]) {
        let _waiting = background::wait();
        let lacks = |phase| phase == Phase::Pinning || from.contains(&phase);
        while lacks(planned.phase()) && !self.cell.is_closed() {
            if planned.begins(from) {
                self.pin_missing(planned, self.pinner.memory.device());
            } else {
                planned.wait_while_pinning();
            }
        }
    }

    /// Pins a region that was returned, and that a request needs.
    #[cold]
    fn pin_again(&self, planned: &Planned, region: usize) {
        let (_waiting, _waits) = (background::wait(), self.request_waits());
        while !planned.has(region) && !self.cell.is_closed() {
            if !planned.begins(AGAIN) {
                planned.wait_while_pinning();
                if planned.phase() == Phase::Done {
                    return;
                }
                continue;
            }
            let _pinning = Pinning(planned);
            // Another thread may have pinned it between the two questions.
            let device = self.pinner.memory.device();
            if !planned.has(region) && !self.pin_region(planned, region, device) {
                return;
            }
        }
    }

    pub(super) fn pin_plan_in_a_thread(&'static self) {
        let device = self.pinner.memory.device();
        let work = move || {
            self.pinner.memory.start(device);
            background::enter();
            self.cell.guarded(|| {
                self.pin_missing(self.planned.as_ref()?, device);
                Some(())
            });
        };
        if let Err(why) = sync::start("pinbuddy-plan", work) {
            self.once(&self.notices.no_thread, || format!("no thread for the plan's memory: {why}"));
            if let Some(planned) = &self.planned {
                // Requests that wait for the plan's memory pin it themselves.
                if !planned.waits {
                    planned.give_up(0);
                }
                drop(Pinning(planned));
            }
        }
    }

    /// Pins all regions that are missing, in their order and for this device, up to the first that is refused.
    fn pin_missing(&self, planned: &Planned, device: Device) {
        let _pinning = Pinning(planned);
        let (mut count, mut sum) = (0, 0);
        loop {
            let next = planned.state.lock().slots.missing().next();
            let Some((index, bytes)) = next else { break };
            if !self.pin_region(planned, index, device) {
                planned.give_up(index);
                break;
            }
            planned.has_pinned_one();
            (count, sum) = (count + 1, sum + bytes);
        }
        log::info(|| {
            let size = Bytes(sum as u64);
            format!("pinned {size} in {count} regions, as the plan says")
        });
    }

    /// Pins one region that is missing; false if it is refused, which is said once.
    fn pin_region(&self, planned: &Planned, index: usize, device: Device) -> bool {
        let bytes = planned.state.lock().slots.lengths()[index];
        let pin = || self.pinner.pin(bytes, device, &self.cell);
        // What is on its way back is still counted.
        let pinned = pin().or_else(|refused| match self.wait_for_its_unpin() {
            0 => Err(refused),
            _ => pin(),
        });
        match pinned {
            Ok((region, took)) => {
                if let Some(mut provisioner) = self.cell.provisioner() {
                    provisioner.pinned_beside(bytes, took);
                }
                let mut state = planned.state.lock();
                state.slots.pinned(index, region.base);
                state.stats.region_adopted(bytes as u64, false);
                true
            }
            Err(refused) => {
                planned.state.lock().refused.push(index);
                self.once(&planned.refused, || {
                    format!(
                        "the plan asks for {} of pinned memory: {}. What has no place is served as \
                         without a plan",
                        Bytes(bytes as u64),
                        refused.reason()
                    )
                });
                false
            }
        }
    }
}
