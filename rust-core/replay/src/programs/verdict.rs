//! How near a program comes to the bounds that hold for every program, compared with stock.

use crate::world::Nanos;

use super::run::Outcome;

/// What the bounds depend on, besides the program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Bytes that the user asked to have ready.
    pub told: u64,
    /// Bytes of a segment.
    pub segment: u64,
    /// How long the driver takes to register one segment that the user asked to have ready. That cannot
    /// be stopped, and a request may have to wait for it.
    pub registration: Nanos,
}

/// How near a program comes to each bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The most that was pinned, over the largest of: what the user asked for; 1.25 times the largest
    /// set and a segment; what stock pinned. Up to 1 the bound holds.
    pub pinned: f64,
    /// The most pins more than stock's in any stretch of the program.
    pub pins: u64,
    /// All bytes ever pinned, over the sum of the largest set, stock's and what the user asked for.
    pub bytes: f64,
    /// The longest wait, over the sum of 1.5 times what stock's pins would take, 20 ms, and `registration`.
    /// Up to 1 the bound holds.
    pub waits: f64,
    /// How many requests unpinned memory on their own thread, which stock's never do: the driver waits for kernels meanwhile.
    pub unpinning: u64,
    /// How long the program took, over stock's.
    pub time: f64,
}

/// How long a request may wait beyond 1.5 times stock's time.
const GRACE: Nanos = 20_000_000;

impl Verdict {
    /// `ours` against `stocks`, of the same program.
    pub fn of(ours: &Outcome, stocks: &Outcome, bounds: Bounds) -> Self {
        let set = ours.largest_set.max(stocks.largest_set);
        let by_set = set + set / 4 + bounds.segment;
        let most = bounds.told.max(by_set).max(stocks.peak);
        let grace = (GRACE + bounds.registration) as f64;
        let wait = |it: &(Nanos, Nanos)| it.0 as f64 / (it.1 as f64 * 1.5 + grace);
        let waits = ours.waits.iter().map(wait);
        let bytes = set + stocks.bytes_pinned + bounds.told;
        Self {
            pinned: ours.peak as f64 / most.max(1) as f64,
            pins: most_ahead(&ours.pins, &stocks.pins),
            bytes: ours.bytes_pinned as f64 / bytes.max(1) as f64,
            waits: waits.fold(0.0, f64::max),
            unpinning: ours.unpinning,
            time: ours.time as f64 / stocks.time.max(1) as f64,
        }
    }
}

/// The most by which `ours` grows more than `stocks` in any stretch.
fn most_ahead(ours: &[u64], stocks: &[u64]) -> u64 {
    let (mut least, mut most) = (0_i64, 0_i64);
    for (ours, stocks) in ours.iter().zip(stocks) {
        let ahead = *ours as i64 - *stocks as i64;
        least = least.min(ahead);
        most = most.max(ahead - least);
    }
    most.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_counts_from_where_pins_were_fewest() {
        assert_eq!(most_ahead(&[1, 2, 3], &[1, 2, 3]), 0);
        assert_eq!(most_ahead(&[1, 1, 1, 5], &[1, 4, 8, 8]), 4);
        assert_eq!(most_ahead(&[3, 3], &[1, 9]), 2);
    }

    #[test]
    fn at_its_bound_a_program_has_one() {
        let of = |peak, waited| Outcome {
            largest_set: 4000,
            peak,
            pinned_at_end: peak,
            bytes_pinned: 9000,
            pins: vec![1],
            waits: vec![(waited, 100_000_000)],
            unpinning: 0,
            time: 7,
        };
        let bounds = |told, registration| Bounds { told, segment: 1000, registration };
        let verdict = Verdict::of(&of(6000, 170_000_000), &of(5000, 0), bounds(0, 0));
        assert_eq!((verdict.pinned, verdict.waits), (1.0, 1.0));
        assert_eq!((verdict.bytes, verdict.time), (9000.0 / 13000.0, 1.0));
        let told = bounds(12_000, 30_000_000);
        let verdict = Verdict::of(&of(6000, 200_000_000), &of(5000, 0), told);
        assert_eq!((verdict.pinned, verdict.waits), (0.5, 1.0));
    }
}
