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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_keeps_peak_and_flow() {
        let mut gauge = Gauge::default();
        gauge.add(10);
        gauge.add(5);
        gauge.remove(12);
        assert_eq!(gauge, Gauge { current: 3, peak: 15, allocated: 15, freed: 12 });
        gauge.reset_peak();
        assert_eq!(gauge, Gauge { current: 3, peak: 3, allocated: 15, freed: 12 });
        gauge.reset_accumulated();
        assert_eq!(gauge, Gauge { current: 3, peak: 3, allocated: 0, freed: 0 });
    }
}
