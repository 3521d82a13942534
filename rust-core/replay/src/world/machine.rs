//! How fast a machine pins, and how much it has: what a simulated process meets.
//!
//! Filling memory with pages can go on in several threads at once and be stopped; the driver locks
//! and registers one region at a time. Stock's way, `cudaHostAlloc`, does both inside the driver.

use crate::MIB;

/// Moments and times, in nanoseconds.
pub type Nanos = u64;

/// See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// To fill a mebibyte, at a request's own priority.
    pub fill: Nanos,
    /// To register a mebibyte.
    pub register: Nanos,
    /// To unpin a mebibyte.
    pub unpin: Nanos,
    /// How many times as long filling takes behind the program.
    pub behind: u32,
    /// The most that the engine may pin, in bytes.
    pub budget: u64,
}

impl Machine {
    /// Pins take no time, and there is as much memory as anybody asks for.
    pub const INSTANT: Self = Self {
        fill: 0,
        register: 0,
        unpin: 0,
        behind: 1,
        budget: u64::MAX,
    };

    /// What the driver takes for a region of `bytes`.
    pub fn registers(&self, bytes: u64) -> Nanos {
        at_pace(self.register, bytes)
    }

    /// What stock's own pin of `bytes` takes, all of it in the driver.
    pub fn stocks(&self, bytes: u64) -> Nanos {
        at_pace(self.fill + self.register, bytes)
    }
}

pub(super) fn at_pace(per_mib: Nanos, bytes: u64) -> Nanos {
    let nanos = u128::from(per_mib) * u128::from(bytes) / u128::from(MIB);
    u64::try_from(nanos).unwrap_or(u64::MAX)
}
