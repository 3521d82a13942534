//! What a plan or `warm_up` asks for is pinned before the first request: as soon as the program uses a device.
//!
//! The program says that CUDA is up. Its first context comes later, on the device that it chooses by then; a pin before
//! that would make one on a device that the program may never want (D28). So a thread waits for the context. Knows neither
//! regions nor requests. Invariant: nothing is pinned without a plan unless the program asks, since it may never pin at all.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pinbuddy_core::WarmUp;

use super::Handle;
use crate::backing::Memory;
use crate::sync::{self, thread};

/// How long the thread rests between two looks: a part of the time that it has waited, within these bounds. Most programs have a
/// context within milliseconds.
const PART: u32 = 16;
const OFTEN: Duration = Duration::from_millis(1);
const SELDOM: Duration = Duration::from_secs(1);

/// A program that has no context by then may never have one. Its requests pin by themselves.
const PATIENCE: Duration = Duration::from_secs(600);

impl<M: Memory> Handle<M> {
    /// CUDA is up: what the plan asks for is pinned, by a thread of its own, once `adopt_context` is true, which has given that
    /// thread the device by then: whose memory it is decides on which node it lies. Does nothing
    /// without a plan, where the user turned warm-ups off, and a second time. Where there is no thread, or the process
    /// never gets a context, requests pin as they would have.
    pub fn warm_up_early(&'static self, adopt_context: impl Fn() -> bool + Send + 'static) {
        let wanted = self.is_planned && self.settings.warm_up != WarmUp::Off && self.is_on();
        if wanted {
            // At full speed: the program needs all of it, and its first request would wait for what is left.
            let full_speed = self.settings.warm_up != WarmUp::Background;
            self.warm_up_in_context(full_speed, adopt_context);
        }
    }

    /// As [`Self::warm_up`], by a thread that waits until `adopt_context` is true: for a program that has not chosen a device
    /// yet. One such thread waits; false if it cannot be started, and where nothing can be pinned.
    pub fn warm_up_in_context(
        &'static self,
        full_speed: bool,
        adopt_context: impl Fn() -> bool + Send + 'static,
    ) -> bool {
        if !self.is_on() {
            return false;
        }
        if self.early.swap(true, Ordering::Relaxed) {
            return true;
        }
        let wait = move || {
            let began = Instant::now();
            while !self.cell.is_closed() {
                if adopt_context() {
                    self.warm_up(full_speed);
                    return;
                }
                let Some(rest) = next_rest(began.elapsed()) else {
                    self.early.store(false, Ordering::Relaxed);
                    return;
                };
                thread::sleep(rest);
            }
        };
        let started = sync::start("pinbuddy-early", wait).is_ok();
        self.early.store(started, Ordering::Relaxed);
        started
    }
}

/// How long to rest after a wait of so long; `None` once the wait is over.
pub(super) fn next_rest(waited: Duration) -> Option<Duration> {
    (waited < PATIENCE).then(|| (waited / PART).clamp(OFTEN, SELDOM))
}
