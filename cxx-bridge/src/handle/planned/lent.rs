//! Blocks that are lent: how many, and their bytes.
//!
//! Two additions for a block that is returned, half as many as gauges take: what was returned is what was lent and is not
//! there any more.

use pinbuddy_core::Stats;

/// Blocks, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    blocks: u64,
    bytes: u64,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Lent {
    now: Amount,
    /// Since peaks were reset.
    most: Amount,
    /// Since accumulated values were reset, and what was lent then.
    all: Amount,
    before: Amount,
}

impl Lent {
    #[inline]
    pub(super) fn block(&mut self, bytes: u64) {
        self.now.blocks += 1;
        self.now.bytes += bytes;
        self.most.blocks = self.most.blocks.max(self.now.blocks);
        self.most.bytes = self.most.bytes.max(self.now.bytes);
        self.all.blocks += 1;
        self.all.bytes = self.all.bytes.wrapping_add(bytes);
    }

    #[inline]
    pub(super) fn returned(&mut self, bytes: u64) {
        self.now.blocks -= 1;
        self.now.bytes -= bytes;
    }

    /// How many were lent so far, and how many are now: the same as long as nothing is lent or returned.
    pub(super) fn turns(&self) -> (u64, u64) {
        (self.all.blocks, self.now.blocks)
    }

    pub(super) fn reset_peaks(&mut self) {
        self.most = self.now;
    }

    pub(super) fn reset_accumulated(&mut self) {
        (self.all, self.before) = (Amount::default(), self.now);
    }

    /// Writes it into gauges that have nothing of it.
    pub(super) fn show(&self, stats: &mut Stats) {
        stats.hits = self.all.blocks;
        for (gauge, of) in [
            (
                &mut stats.active_blocks,
                (|it| it.blocks) as fn(Amount) -> u64,
            ),
            (&mut stats.active_bytes, |it| it.bytes),
        ] {
            (gauge.current, gauge.peak) = (of(self.now), of(self.most));
            gauge.allocated = of(self.all);
            gauge.freed = of(self.before)
                .wrapping_add(of(self.all))
                .wrapping_sub(of(self.now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinbuddy_core::Gauge;

    #[test]
    fn it_shows_what_gauges_would() {
        let (mut lent, mut gauges) = (Lent::default(), Stats::default());
        for round in 0..3 {
            for bytes in [10, 20, 40] {
                lent.block(bytes);
                gauges.block_lent(bytes);
            }
            for bytes in [20, 40] {
                lent.returned(bytes);
                gauges.block_returned(bytes);
            }
            let mut shown = Stats::default();
            lent.show(&mut shown);
            let all = |it: &Stats| -> [Gauge; 2] { [it.active_blocks, it.active_bytes] };
            assert_eq!((all(&shown), shown.hits), (all(&gauges), gauges.hits));
            if round == 0 {
                lent.reset_accumulated();
                gauges.reset_accumulated();
            } else {
                lent.reset_peaks();
                gauges.reset_peaks();
            }
        }
    }
}
