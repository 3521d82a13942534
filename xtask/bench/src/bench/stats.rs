//! Medians, spreads and ratios of measurements in turns.

use serde::Serialize;

/// The median of some rounds, with the least and the most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    /// Of at least one value.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Self {
            median,
            least: sorted[0],
            most: sorted[sorted.len() - 1],
        }
    }
}

/// The median of at least one value.
pub fn median(values: &[f64]) -> f64 {
    Spread::of(values).median
}

/// The median of the turns' ratios. A disturbance mostly affects both sides of a turn.
pub fn ratio_of_turns(of: &[f64], over: &[f64]) -> f64 {
    debug_assert_eq!(of.len(), over.len());
    let ratios: Vec<f64> = of.iter().zip(over).map(|(of, over)| of / over).collect();
    median(&ratios)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_answers() {
        let of = |values: &[f64]| {
            let Spread {
                median,
                least,
                most,
            } = Spread::of(values);
            (median, least, most)
        };
        assert_eq!(of(&[3.0]), (3.0, 3.0, 3.0));
        assert_eq!(of(&[9.0, 1.0]), (5.0, 1.0, 9.0));
        assert_eq!(of(&[9.0, 1.0, 2.0]), (2.0, 1.0, 9.0));
        assert_eq!(ratio_of_turns(&[1.0, 2.0, 90.0], &[2.0, 4.0, 3.0]), 0.5);
    }

    proptest! {
        #[test]
        fn half_is_at_most_the_median_and_half_at_least(
            values in prop::collection::vec(0.0..1e9, 1..50),
        ) {
            let Spread { median, least, most } = Spread::of(&values);
            let below = values.iter().filter(|it| **it <= median).count();
            let above = values.iter().filter(|it| **it >= median).count();
            prop_assert!(2 * below >= values.len() && 2 * above >= values.len());
            prop_assert!(values.iter().all(|it| (least..=most).contains(it)));
        }

        /// A turn that is slower for both sides does not change the ratio.
        #[test]
        fn a_disturbance_that_meets_both_cancels(
            turns in prop::collection::vec((1.0..1e3, 1.0..100.0), 1..50), factor in 0.1..10.0,
        ) {
            let over: Vec<f64> = turns.iter().map(|(ns, slow)| ns * slow).collect();
            let of: Vec<f64> = over.iter().map(|ns| ns * factor).collect();
            let error: f64 = ratio_of_turns(&of, &over) / factor - 1.0;
            prop_assert!(error.abs() < 1e-9);
        }
    }
}
