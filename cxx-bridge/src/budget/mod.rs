//! How much the engine may pin, so that it never takes the machine down.
//!
//! Page-locked memory cannot be swapped out or reclaimed. So, unless `BUDDY_MAX_MB` says otherwise,
//! the engine keeps to half of what the machine, the control group and the lock limit leave, shared
//! by the processes that torchrun started here. Knows neither the engine nor how memory is pinned.
//! Invariant: what is reserved never exceeds the budget.

mod limits;

use std::sync::atomic::{AtomicUsize, Ordering};

pub use limits::{Limit, Limits};

use crate::config::MIB;
use crate::launcher;
use crate::log::Bytes;

/// The share of what is free that the engine may pin: one of so many parts.
const SHARE: u64 = 2;

/// The most that the engine pins, in bytes, and where that number came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The most that may be pinned at once.
    pub bytes: usize,
    /// Where it came from, for people; completes "... may pin 2 GiB, ...".
    pub why: String,
}

impl Budget {
    /// The budget under `limits`, for each of `processes` processes, of which a variable of that
    /// name says how many there are; `max_mb` overrides both.
    pub fn decide(
        max_mb: Option<usize>,
        limits: &Limits,
        processes: Option<(usize, &str)>,
    ) -> Self {
        if let Some(max) = max_mb {
            return Self {
                bytes: max.saturating_mul(MIB),
                why: "which is BUDDY_MAX_MB".to_owned(),
            };
        }
        let Some(Limit { bytes, name }) = limits.least() else {
            return Self {
                bytes: usize::MAX,
                why: "since no limit is known".to_owned(),
            };
        };
        let mut why = format!("half of the {} of {name}", Bytes(bytes));
        let (processes, variable) = processes.unwrap_or((1, ""));
        if processes > 1 {
            why += &format!(", shared by {processes} processes ({variable})");
        }
        let share = bytes / SHARE / processes as u64;
        Self {
            bytes: usize::try_from(share).unwrap_or(usize::MAX),
            why,
        }
    }

    /// The budget of this process on this machine, now.
    pub fn here(max_mb: Option<usize>) -> Self {
        Self::decide(max_mb, &Limits::read("/".as_ref()), launcher::processes())
    }

    /// Whether a pin of `bytes` leaves as much again of what is free now. A machine fills up after
    /// the budget was decided, by processes that no launcher counts among others.
    pub fn leaves_enough(bytes: usize, limits: &Limits) -> bool {
        let free = limits.least().map_or(u64::MAX, |limit| limit.bytes);
        bytes as u64 <= free / SHARE
    }
}

/// What has been taken out of a budget. The counts of concurrent pins cannot pass it together.
#[derive(Debug)]
pub(crate) struct Purse {
    pub(crate) budget: Budget,
    taken: AtomicUsize,
}

impl Purse {
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            budget,
            taken: AtomicUsize::new(0),
        }
    }

    /// Takes `bytes`, if so much is left.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let more = |taken: usize| {
            let sum = taken.checked_add(bytes)?;
            (sum <= self.budget.bytes).then_some(sum)
        };
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Puts back what was taken.
    pub(crate) fn put(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What is left.
    pub(crate) fn left(&self) -> usize {
        self.budget.bytes - self.taken.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const EIGHT: Option<(usize, &str)> = Some((8, "LOCAL_WORLD_SIZE"));

    #[test]
    fn a_pin_leaves_as_much_again() {
        let limits = limits(10 * GIB, Some(6 * GIB), None);
        assert!(Budget::leaves_enough(3 << 30, &limits));
        assert!(!Budget::leaves_enough((3 << 30) + 1, &limits));
        assert!(Budget::leaves_enough(usize::MAX / 4, &Limits::default()));
    }

    fn limits(available: u64, cgroup: Option<u64>, locked: Option<u64>) -> Limits {
        Limits {
            available: Some(available),
            cgroup,
            locked,
        }
    }

    #[test]
    fn the_least_limit_decides_and_is_named() {
        for (limits, gib, name) in [
            (limits(24 * GIB, None, None), 12, "MemAvailable"),
            (
                limits(24 * GIB, Some(6 * GIB), None),
                3,
                "the control group leaves",
            ),
            (
                limits(24 * GIB, Some(6 * GIB), Some(2 * GIB)),
                1,
                "RLIMIT_MEMLOCK",
            ),
        ] {
            let budget = Budget::decide(None, &limits, None);
            assert_eq!(budget.bytes as u64, gib * GIB);
            assert!(budget.why.contains(name), "{}", budget.why);
        }
    }

    #[test]
    fn eight_ranks_on_a_small_node_share_one_half() {
        let budget = Budget::decide(None, &limits(24 * GIB, None, None), EIGHT);
        assert_eq!(budget.bytes as u64, 24 * GIB / 16);
        assert_eq!(
            budget.why,
            "half of the 24 GiB of MemAvailable, shared by 8 processes (LOCAL_WORLD_SIZE)"
        );
    }

    #[test]
    fn a_chosen_maximum_is_taken_as_it_is() {
        let budget = Budget::decide(Some(500), &limits(GIB, None, None), EIGHT);
        assert_eq!(budget.bytes, 500 * MIB);
    }

    #[test]
    fn with_no_limit_known_nothing_is_held_back() {
        assert_eq!(
            Budget::decide(None, &Limits::default(), EIGHT).bytes,
            usize::MAX
        );
    }

    #[test]
    fn this_machine_has_a_budget() {
        let budget = Budget::here(None);
        assert!(
            budget.bytes < usize::MAX && !budget.why.is_empty(),
            "{budget:?}"
        );
    }

    #[test]
    fn a_purse_is_never_overdrawn() {
        let purse = Purse::new(Budget {
            bytes: 1000,
            why: String::new(),
        });
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| (0..100).filter(|_| purse.take(7)).count()))
                .collect();
            threads.into_iter().map(|it| it.join().unwrap()).sum()
        });
        assert_eq!((taken, purse.left()), (142, 6));
        assert!(!purse.take(usize::MAX), "a sum that overflows");
        purse.put(7);
        assert!(purse.take(13));
    }
}
