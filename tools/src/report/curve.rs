//! A quantity over time, in bounded memory: its least and its greatest value in each of some thousand stretches.
//!
//! Invariant: no value that was pushed is above its stretch's greatest or below its least.

use serde::Serialize;

/// The most stretches of a curve that is drawn as wide as a screen.
pub(super) const FINE: usize = 4096;

/// The same of a curve that is one of many.
pub(super) const COARSE: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    from: u64,
    low: u64,
    high: u64,
}

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "Columns")]
pub struct Curve {
    most: usize,
    stretches: Vec<Stretch>,
    /// How many pushes are one stretch.
    each: usize,
    /// How many the last one has.
    has: usize,
    last: Option<u64>,
}

/// What a page gets: where stretches begin, and their values, each as the difference to the one before.
#[derive(Serialize)]
struct Columns {
    from: Vec<i64>,
    high: Vec<i64>,
    /// Empty if it is `high`.
    low: Vec<i64>,
}

impl Curve {
    pub(super) fn new(most: usize) -> Self {
        Self { most, stretches: Vec::new(), each: 1, has: 0, last: None }
    }

    /// From `at` on the quantity is `value`. Times never go back.
    pub(super) fn push(&mut self, at: u64, value: u64) {
        if self.last.replace(value) == Some(value) {
            return;
        }
        match self.stretches.last_mut() {
            Some(stretch) if self.has < self.each => {
                stretch.low = stretch.low.min(value);
                stretch.high = stretch.high.max(value);
                self.has += 1;
            }
            _ => {
                if self.stretches.len() == self.most {
                    self.halve();
                }
                let (from, low, high) = (at, value, value);
                self.stretches.push(Stretch { from, low, high });
                self.has = 1;
            }
        }
    }

    fn halve(&mut self) {
        let pairs = self.stretches.chunks(2).map(|pair| Stretch {
            from: pair[0].from,
            low: pair.iter().map(|it| it.low).min().unwrap_or(0),
            high: pair.iter().map(|it| it.high).max().unwrap_or(0),
        });
        self.stretches = pairs.collect();
        self.each *= 2;
    }

    /// Whether some values are not told apart.
    pub(super) fn is_thinned(&self) -> bool {
        self.each > 1
    }

    /// Where stretches begin, and the greatest value of each.
    pub(super) fn points(&self) -> impl Iterator<Item = (u64, u64)> {
        self.stretches.iter().map(|it| (it.from, it.high))
    }
}

impl From<Curve> for Columns {
    fn from(curve: Curve) -> Self {
        let column = |of: fn(&Stretch) -> u64| differences(curve.stretches.iter().map(of));
        Self {
            from: column(|it| it.from),
            high: column(|it| it.high),
            low: match curve.is_thinned() {
                true => column(|it| it.low),
                false => Vec::new(),
            },
        }
    }
}

/// Each number as its difference to the one before, so that pages are short.
pub(super) fn differences(numbers: impl Iterator<Item = u64>) -> Vec<i64> {
    let mut before = 0_i64;
    let difference = |number: u64| {
        // Bytes and microseconds that a trace may have are far below that.
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        number - std::mem::replace(&mut before, number)
    };
    numbers.map(difference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_curves_keep_every_change_and_long_ones_every_extreme() {
        let mut curve = Curve::new(4);
        for (at, value) in [(1, 5), (2, 5), (3, 9), (9, 2)] {
            curve.push(at, value);
        }
        assert_eq!(curve.points().collect::<Vec<_>>(), [(1, 5), (3, 9), (9, 2)]);
        assert!(!curve.is_thinned());
        let columns = Columns::from(curve.clone());
        assert_eq!([columns.from, columns.high], [[1, 2, 6], [5, 4, -7]]);
        assert!(columns.low.is_empty());
        for at in 10..1000_u64 {
            curve.push(at, if at == 500 { 77 } else { 10 + at % 3 });
        }
        assert!(curve.is_thinned());
        let points: Vec<_> = curve.points().collect();
        assert!(points.len() <= 4, "{points:?}");
        assert_eq!(points.iter().map(|it| it.1).max(), Some(77));
        assert_eq!(points[0].0, 1);
        let lows: i64 = Columns::from(curve).low[0];
        assert_eq!(lows, 2, "the least of the first stretch");
    }
}
