//! A quantity over time: what it is, the most that it was, and what came and went. Knows not of what.

/// A quantity over time, with the meaning of PyTorch's `c10::CachingAllocator::Stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauge {
    /// What it is now.
    pub current: u64,
    /// The most that it was since the last reset of peaks.
    pub peak: u64,
    /// All that was added since the last reset of what is accumulated.
    pub allocated: u64,
    /// All that was taken away since then.
    pub freed: u64,
}

impl Gauge {
    #[inline]
    pub(crate) fn add(&mut self, amount: u64) {
        self.current += amount;
        self.peak = self.peak.max(self.current);
        self.allocated += amount;
    }

    #[inline]
    pub(crate) fn remove(&mut self, amount: u64) {
        self.current -= amount;
        self.freed = self.freed.wrapping_add(amount);
    }

    /// So much was removed and added again, unseen.
    pub(crate) fn reused(&mut self, amount: u64) {
        self.allocated = self.allocated.wrapping_add(amount);
        self.freed = self.freed.wrapping_add(amount);
    }

    pub(crate) fn reset_peak(&mut self) {
        self.peak = self.current;
    }

    pub(crate) fn reset_accumulated(&mut self) {
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
        assert_eq!(
            gauge,
            Gauge {
                current: 3,
                peak: 15,
                allocated: 15,
                freed: 12
            }
        );
        gauge.reset_peak();
        assert_eq!(
            gauge,
            Gauge {
                current: 3,
                peak: 3,
                allocated: 15,
                freed: 12
            }
        );
        gauge.reset_accumulated();
        assert_eq!(
            gauge,
            Gauge {
                current: 3,
                peak: 3,
                allocated: 0,
                freed: 0
            }
        );
    }
}
