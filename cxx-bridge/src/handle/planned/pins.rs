//! Pins of the regions that a plan asks for.
//!
//! One thread at a time pins them: the first that asks, which others wait for, or one of its own at low priority. Knows
//! nothing of slots but which regions are missing.

use std::time::{Duration, Instant};

use super::super::Handle;
use super::super::cell::EngineCell;
use super::{Phase, Planned, State};
use crate::backing::{Control, Memory, background};
use crate::lock::Guard;
use crate::log::{self, Bytes};
use crate::sync::thread;

/// A thread that waits for the plan's regions looks again after this time, in case it missed that they are there.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Pins of regions that a plan asks for, which only the end of the process stops.
#[derive(Debug)]
struct Own<'a>(&'a EngineCell);

impl Control for Own<'_> {
    fn go_on(&self) -> bool {
        !self.0.is_closed()
    }
}

/// The thread that pins the plan's regions; dropping it ends that, after a panic too.
#[derive(Debug)]
struct Pinning<'a>(&'a Planned);

impl Drop for Pinning<'_> {
    fn drop(&mut self) {
        self.0.state.lock().phase = Phase::Done;
        self.0.changed.notify_all();
    }
}

impl<M: Memory> Handle<M> {
    /// Pins the plan's regions; with `wait`, returns when that is over.
    pub(in crate::handle) fn warm_up_plan(&'static self, wait: bool) {
        if let Some(planned) = &self.planned {
            if wait {
                drop(self.wait_for_plan(planned));
            } else {
                drop(self.begin_in_a_thread(planned));
            }
        }
    }

    /// Waits for pins of the plan's regions, which have been told to stop, until a time.
    pub(in crate::handle) fn wait_for_plan_to_stop(&self, until: Instant) {
        let Some(planned) = &self.planned else { return };
        let mut awake = planned.state.unless_poisoned();
        while let Some(state) = awake.filter(|it| it.phase == Phase::Pinning) {
            if Instant::now() >= until {
                break;
            }
            let soon = Instant::now() + Duration::from_millis(1);
            awake = state.wait_until(&planned.changed, soon);
        }
    }

    /// A request came before all regions are pinned.
    #[cold]
    pub(super) fn begin_plan<'a>(&'static self, planned: &'a Planned) -> Option<Guard<'a, State>> {
        if planned.waits {
            let state = self.wait_for_plan(planned);
            if self.cell.is_closed() {
                // Without the lock, which the end of the process waits for.
                drop(state);
                self.stay_if_closed();
                return None;
            }
            return state;
        }
        Some(self.begin_in_a_thread(planned))
    }

    fn begin_in_a_thread<'a>(&'static self, planned: &'a Planned) -> Guard<'a, State> {
        let mut state = planned.state.lock();
        if state.phase == Phase::Cold {
            state.phase = Phase::Pinning;
            drop(state);
            self.pin_plan_in_a_thread();
            state = planned.state.lock();
        }
        state
    }

    /// Pins the missing regions, unless another thread does; returns when that is over.
    fn wait_for_plan<'a>(&self, planned: &'a Planned) -> Option<Guard<'a, State>> {
        let _waiting = background::wait();
        let mut state = planned.state.lock();
        while state.phase != Phase::Done && !self.cell.is_closed() {
            if state.phase == Phase::Cold {
                state.phase = Phase::Pinning;
                drop(state);
                self.pin_missing(planned);
                state = planned.state.lock();
            } else {
                state = state.wait_until(&planned.changed, Instant::now() + LOOK_AGAIN)?;
            }
        }
        Some(state)
    }

    fn pin_plan_in_a_thread(&'static self) {
        let device = self.pinner.memory.device();
        let thread = thread::Builder::new().name("pinbuddy-plan".to_owned());
        let work = move || {
            self.pinner.memory.start(device);
            background::enter();
            self.cell.guarded(|| {
                self.pin_missing(self.planned.as_ref()?);
                Some(())
            });
        };
        if let Err(why) = thread.spawn(work) {
            self.once(&self.notices.no_thread, || {
                format!("no thread for the plan's memory: {why}")
            });
            if let Some(planned) = &self.planned {
                drop(Pinning(planned));
            }
        }
    }

    /// Pins all regions that are missing, in their order, up to the first that is refused.
    fn pin_missing(&self, planned: &Planned) {
        let _pinning = Pinning(planned);
        let device = self.pinner.memory.device();
        let (mut count, mut sum) = (0, 0);
        loop {
            let next = planned.state.lock().slots.missing().next();
            let Some((index, bytes)) = next else { break };
            match self.pinner.pin(bytes, device, &Own(&self.cell)) {
                Ok((region, _)) => {
                    let mut state = planned.state.lock();
                    state.slots.pinned(index, region.base);
                    state.stats.region_adopted(bytes as u64, false);
                    (count, sum) = (count + 1, sum + bytes);
                }
                Err(refused) => {
                    self.once(&planned.refused, || {
                        format!(
                            "the plan asks for {} of pinned memory: {}. What has no place is served as \
                             without a plan",
                            Bytes(bytes as u64),
                            refused.reason()
                        )
                    });
                    break;
                }
            }
        }
        log::info(|| {
            let size = Bytes(sum as u64);
            format!("pinned {size} in {count} regions, as the plan says")
        });
    }
}
