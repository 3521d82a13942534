//! The machine of a simulated process: how fast it pins, and how much.
//!
//! Several threads can fill memory with pages at once, and can be stopped; the driver locks and
//! registers one region at a time. Stock's `cudaHostAlloc` does both inside the driver.

use crate::MIB;

/// Points in time and durations, in nanoseconds.
pub type Nanos = u64;

/// See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Time to fill a mebibyte, at a request's priority.
    pub fill: Nanos,
    /// Time to register a mebibyte.
    pub register: Nanos,
    /// Time to unpin a mebibyte.
    pub unpin: Nanos,
    /// How many times as long filling takes in the background.
    pub behind: u32,
    /// The most that the engine may pin, in bytes.
    pub budget: u64,
}

impl Machine {
    /// Pins take no time, and memory is unlimited.
    pub const INSTANT: Self = Self { fill: 0, register: 0, unpin: 0, behind: 1, budget: u64::MAX };

    /// So many nanoseconds for a mebibyte, of which six tenths fill it, and so many times as long for filling in the background;
    /// memory is unlimited.
    pub fn paced(pace: Nanos, behind: u32) -> Self {
        Self { fill: pace * 6 / 10, register: pace * 4 / 10, unpin: pace / 5, behind, budget: u64::MAX }
    }

    /// How long the driver takes to register `bytes`.
    pub fn registers(&self, bytes: u64) -> Nanos {
        at_pace(self.register, bytes)
    }

    /// How long stock's own pin of `bytes` takes, all of it in the driver.
    pub fn stocks(&self, bytes: u64) -> Nanos {
        at_pace(self.fill + self.register, bytes)
    }
}

pub(super) fn at_pace(per_mib: Nanos, bytes: u64) -> Nanos {
    let nanos = u128::from(per_mib) * u128::from(bytes) / u128::from(MIB);
    u64::try_from(nanos).unwrap_or(u64::MAX)
}
