//! Whether a plan costs more memory than it saves, estimated while it serves.
//!
//! The estimate of what PyTorch's allocator would have reserved by itself is the larger of two numbers: what the plan's own record
//! reserved with the plan, which is less than without; and the most bytes that lived at once so far, times what PyTorch's allocator
//! reserved for each such byte in the record. So a run that needs more than the record costs nothing, and what lies idle in regions while
//! memory is reserved beside them does. Knows neither blocks nor regions, and no clock.

use serde::{Deserialize, Serialize};

use super::MIB;

/// A plan may cost one of PyTorch's segments more.
const SEGMENT: u64 = 20 * MIB;

/// A plan steps aside once it was found to cost more than that, and once more for each so many requests of an iteration: in a long one,
/// single requests of other sizes are no other program.
const OF_AN_ITERATION: usize = 256;

/// What a record reserved of a device: numbers that a plan's file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Bytes reserved with the plan.
    pub with_plan: u64,
    /// Bytes reserved by the same allocator alone.
    pub without: u64,
    /// The most bytes in use at once.
    pub in_use: u64,
}

/// See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    expected: Expected,
    most_in_use: u64,
    patience: usize,
}

impl Costs {
    /// Of a plan that has just begun to serve, with places for so many requests of an iteration.
    #[must_use]
    pub fn new(expected: Expected, iteration: usize) -> Self {
        Self {
            expected,
            most_in_use: 0,
            patience: iteration / OF_AN_ITERATION,
        }
    }

    /// The plan has no place for a request, while so many bytes of the device are reserved and so many in use: whether it is to step
    /// aside.
    pub fn are_too_much(&mut self, reserved: u64, in_use: u64) -> bool {
        self.most_in_use = self.most_in_use.max(in_use);
        if reserved <= self.would_reserve().saturating_add(SEGMENT) {
            return false;
        }
        let is_over = self.patience == 0;
        // It is said once.
        self.patience = self.patience.wrapping_sub(1);
        is_over
    }

    /// How much PyTorch's allocator would have reserved by itself so far, at least.
    #[must_use]
    pub fn would_reserve(&self) -> u64 {
        let Expected {
            with_plan,
            without,
            in_use,
        } = self.expected;
        let scaled = u128::from(self.most_in_use) * u128::from(without) / u128::from(in_use.max(1));
        with_plan.max(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(iteration: usize) -> Costs {
        let expected = Expected {
            with_plan: 100 * MIB,
            without: 120 * MIB,
            in_use: 100 * MIB,
        };
        Costs::new(expected, iteration)
    }

    #[test]
    fn a_plan_that_reserves_what_its_record_did_never_steps_aside() {
        let mut costs = costs(10);
        assert!((0..100).all(|_| !costs.are_too_much(120 * MIB, 60 * MIB)));
        assert!(costs.are_too_much(120 * MIB + 1, 60 * MIB));
    }

    #[test]
    fn a_run_that_needs_more_than_its_record_may_reserve_more() {
        let mut costs = costs(10);
        assert!(!costs.are_too_much(200 * MIB, 150 * MIB));
        assert!(!costs.are_too_much(200 * MIB, MIB), "the most counts");
        assert!(costs.are_too_much(201 * MIB, MIB));
    }

    #[test]
    fn in_a_long_iteration_a_plan_has_to_cost_too_much_more_often() {
        let mut costs = costs(3 * OF_AN_ITERATION);
        let found: Vec<bool> = (0..5)
            .map(|_| costs.are_too_much(200 * MIB, 50 * MIB))
            .collect();
        assert_eq!(found, [false, false, false, true, false]);
    }
}
