//! A quantity over time: its value, its peak, and the sums of what was added and removed.

/// A quantity over time, with the meaning of PyTorch's `c10::CachingAllocator::Stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauge {
    /// Its value now.
    pub current: u64,
    /// Its largest value since peaks were last reset.
    pub peak: u64,
    /// The sum of all additions since accumulated values were last reset.
    pub allocated: u64,
    /// The sum of all removals since then.
    pub freed: u64,
}

impl Gauge {
    /// So much more.
    #[inline]
    pub fn add(&mut self, amount: u64) {
        self.current += amount;
        self.peak = self.peak.max(self.current);
        self.allocated += amount;
    }

    /// So much less.
    #[inline]
    pub fn remove(&mut self, amount: u64) {
        self.current -= amount;
        self.freed = self.freed.wrapping_add(amount);
    }

    /// `amount` was removed and added again, without the engine being told.
    pub(crate) fn reused(&mut self, amount: u64) {
        self.allocated = self.allocated.wrapping_add(amount);
        self.freed = self.freed.wrapping_add(amount);
    }

    /// Peaks begin anew.
    pub fn reset_peak(&mut self) {
        self.peak = self.current;
    }

    /// Sums begin anew.
    pub fn reset_accumulated(&mut self) {
        (self.allocated, self.freed) = (0, 0);
    }
}
