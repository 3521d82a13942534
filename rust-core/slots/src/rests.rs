//! The steps of a lane at which the program rests, by what they ask for.
//!
//! A lane that has lost its place looks here with every request, under the lock that all requests of its stream take: so
//! nothing scans the steps. Knows neither when a step rests nor why.

use std::collections::BTreeSet;
use std::ops::Range;

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub(crate) struct RestingSteps(BTreeSet<Key>);

/// The bytes that a step asks for, whether it is inside an iteration and not its first one, and the step.
type Key = (usize, bool, u32);

impl RestingSteps {
    /// The step rests now if it did not, and the other way round.
    pub(crate) fn flip(&mut self, bytes: usize, is_inside: bool, step: usize) {
        let key = (bytes, is_inside, step as u32);
        if !self.0.remove(&key) {
            self.0.insert(key);
        }
    }

    /// The step for a request of so many bytes: the first one with which an iteration begins, else the next one from `at` on,
    /// else the first one of the period before that. O(log steps).
    pub(crate) fn find(&self, bytes: usize, at: usize, period: usize) -> Option<usize> {
        let first = |is_inside, steps: Range<usize>| {
            let (begin, end) = (steps.start as u32, (steps.end as u32).max(steps.start as u32));
            let mut keys = self.0.range((bytes, is_inside, begin)..(bytes, is_inside, end));
            keys.next().map(|it| it.2 as usize)
        };
        let all = 0..u32::MAX as usize;
        first(false, all.clone()).or_else(|| first(true, at..all.end)).or_else(|| first(true, period..at))
    }
}
