//! How fast this machine pins, learnt from earlier pins.
//!
//! There are three paces, since they differ by a factor of ten: requests' own pins, the worker's pins,
//! and the driver's part of both, which cannot be stopped. The driver registers one region at a time:
//! a pin that was not alone may have waited for another, and that time says nothing about the pace.
//! Knows sizes and times only.

use std::time::Duration;

/// How long one pin took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// Until the kernel had provided the memory.
    pub filling: Duration,
    /// Until the driver had locked and registered it.
    pub registering: Duration,
}

/// Who pins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// A request, for itself.
    Request,
    /// The worker, in the background.
    Worker,
}

/// Time for a size; unknown before the first of its kind.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// 0 while unknown.
    nanos_per_mib: u64,
}

const MIB: u64 = 1 << 20;

impl Pace {
    fn learn(&mut self, bytes: usize, taken: Duration) {
        let mib = (bytes as u64).div_ceil(MIB).max(1);
        let new = (u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX) / mib).max(1);
        // A slow pin counts at once and a fast one gradually: on a busy machine, or with fragmented memory,
        // the next pin may be as slow, and a request would wait for it.
        self.nanos_per_mib = match self.nanos_per_mib {
            old if new >= old => new,
            old => (old - old / 4 + new / 4).max(1),
        };
    }

    fn of(self, bytes: usize) -> Option<Duration> {
        let mib = (bytes as u64).div_ceil(MIB);
        (self.nanos_per_mib > 0).then(|| Duration::from_nanos(self.nanos_per_mib.saturating_mul(mib)))
    }

    /// How many bytes are done in `time`.
    fn within(self, time: Duration) -> Option<usize> {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mib = nanos.checked_div(self.nanos_per_mib)?;
        usize::try_from(mib.saturating_mul(MIB)).ok()
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Paces {
    request: Pace,
    worker: Pace,
    driver: Pace,
}

impl Paces {
    /// A pin is over; `alone` says that no other was under way at the same time.
    pub(super) fn learn(&mut self, who: Who, bytes: usize, took: Took, alone: bool) {
        let mut registering = took.registering;
        if !alone && let Some(usual) = self.driver.of(bytes) {
            registering = registering.min(usual);
        }
        let pace = match who {
            Who::Request => &mut self.request,
            Who::Worker => &mut self.worker,
        };
        pace.learn(bytes, took.filling + registering);
        self.driver.learn(bytes, registering);
    }

    /// How long a pin of `bytes` takes.
    pub(super) fn of(&self, who: Who, bytes: usize) -> Option<Duration> {
        match who {
            Who::Request => self.request.of(bytes),
            Who::Worker => self.worker.of(bytes),
        }
    }

    /// How many bytes a request pins in `time`.
    pub(super) fn within(&self, time: Duration) -> Option<usize> {
        self.request.within(time)
    }

    /// How many bytes the driver registers in `time`.
    pub(super) fn registered_within(&self, time: Duration) -> Option<usize> {
        self.driver.within(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn took(filling: u32, registering: u32) -> Took {
        Took { filling: MS * filling, registering: MS * registering }
    }

    #[test]
    fn each_pace_is_learnt_from_its_own_pins_a_slow_one_at_once_and_a_fast_one_in_part() {
        let mut paces = Paces::default();
        assert_eq!(paces.of(Who::Request, 1 << 20), None);
        paces.learn(Who::Request, 64 << 20, took(48, 16), true);
        assert_eq!(paces.of(Who::Request, 128 << 20), Some(128 * MS));
        assert_eq!(paces.of(Who::Worker, 1 << 20), None);
        assert_eq!(paces.within(10 * MS), Some(10 << 20));
        assert_eq!(paces.registered_within(10 * MS), Some(40 << 20));
        paces.learn(Who::Worker, 64 << 20, took(640, 0), true);
        assert_eq!(paces.of(Who::Worker, 2 << 20), Some(20 * MS));
        for (filling, pace) in [(1, 1), (9, 9), (1, 7)] {
            paces.learn(Who::Request, 1 << 20, took(filling, 0), true);
            assert_eq!(paces.of(Who::Request, 1 << 20), Some(MS * pace), "its own");
        }
    }

    #[test]
    fn what_waits_for_the_driver_says_nothing_of_the_pace() {
        let mut paces = Paces::default();
        let mut learn = |filling, registering, alone| {
            paces.learn(Who::Request, 16 << 20, took(filling, registering), alone);
            (paces.of(Who::Request, 16 << 20), paces.of(Who::Worker, 1))
        };
        assert_eq!(learn(8, 80, false), (Some(88 * MS), None), "better than nothing");
        assert_eq!(learn(8, 160, true), (Some(168 * MS), None));
        assert_eq!(learn(80, 800, false), (Some(240 * MS), None), "filling is its own");
        assert_eq!(paces.registered_within(10 * MS), Some(1 << 20));
    }
}
