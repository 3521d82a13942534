//! Turns the processor's counter into nanoseconds, by comparing it with the system's clock at each drain.
//!
//! Between two comparisons the counter's speed is taken to be constant. Invariant: a later count is never an earlier
//! time.
#![allow(unsafe_code)]

/// A counter of the processor's, which all cores share and which costs a few nanoseconds.
#[inline]
pub(super) fn ticks() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the processor has it.
    let now = unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    let now = {
        let now: u64;
        // SAFETY: it reads a register that all programs may read, and changes nothing.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) now, options(nomem, nostack)) };
        now
    };
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    let now = {
        static SINCE: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        let since = SINCE.get_or_init(std::time::Instant::now);
        since.elapsed().as_nanos() as u64
    };
    now
}

/// Reads both at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// The counter.
    pub(super) ticks: u64,
    /// Nanoseconds of the system's clock.
    pub(super) ns: u64,
}

/// See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    from: Moment,
    to: Moment,
    /// Nanoseconds of a tick between them: a multiplication takes a tenth of a division of 128 bits, and is exact to a
    /// nanosecond for a month.
    pace: f64,
}

impl Clock {
    /// A clock that shows 0 at this moment.
    pub(super) fn starting(at: Moment) -> Self {
        let from = Moment { ns: 0, ..at };
        let pace = 0.0;
        Self { from, to: from, pace }
    }

    /// Compares; `ns` since the clock was started. Returns whether time has passed.
    pub(super) fn compare(&mut self, now: Moment) -> bool {
        let passed = now.ticks > self.to.ticks && now.ns > self.to.ns;
        if passed {
            (self.from, self.to) = (self.to, now);
            let ns = (self.to.ns - self.from.ns) as f64;
            self.pace = ns / (self.to.ticks - self.from.ticks) as f64;
        }
        passed
    }

    /// The time when the counter had this value: between the last two comparisons, or soon after.
    pub(super) fn at(&self, ticks: u64) -> u64 {
        self.from.ns + (ticks.saturating_sub(self.from.ticks) as f64 * self.pace) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_may_change_its_speed() {
        let mut clock = Clock::starting(Moment { ticks: 500, ns: 7 });
        assert_eq!(clock.at(900), 0, "nothing is known of its speed yet");
        let moment = |ticks, ns| Moment { ticks, ns };
        assert!(clock.compare(moment(700, 100)));
        assert_eq!([500, 600, 700].map(|it| clock.at(it)), [0, 50, 100]);
        assert!(clock.compare(moment(1700, 200)));
        assert_eq!([700, 1200, 1700, 1800].map(|it| clock.at(it)), [100, 150, 200, 210]);
        assert_eq!(clock.at(3), 100, "late entries come when the time before was over");
        assert!(!clock.compare(moment(1700, 300)));
        assert_eq!(clock.at(1700), 200);
    }
}
