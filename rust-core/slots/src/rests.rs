//! The steps of a lane at which the program rests, by what they ask for.
//!
//! A lane that has lost its place looks here with every request, under the lock that all requests of its stream take: so
//! nothing scans the steps. Knows neither when a step rests nor why.

use std::collections::BTreeSet;
use std::ops::Range;

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub(crate) struct RestingSteps(BTreeSet<Key>);

/// So many steps of each kind are compared.
const MOST_LOOKS: usize = 32;

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

    /// The step for a request of so many bytes, by how much what was in use there `differs` from what is now: of the nearest ones the
    /// first with which an iteration begins, else the next from `at` on, else the first before that. O(log steps).
    pub(crate) fn find(
        &self,
        bytes: usize,
        at: usize,
        differs: impl Fn(usize) -> u32,
    ) -> Option<usize> {
        let at = at as u32;
        let some = |is_inside, steps: Range<u32>| {
            let keys = (bytes, is_inside, steps.start)..(bytes, is_inside, steps.end);
            self.0.range(keys).take(MOST_LOOKS).map(|it| it.2 as usize)
        };
        let all = some(false, 0..u32::MAX)
            .chain(some(true, at..u32::MAX))
            .chain(some(true, 0..at));
        // The first of several that differ as little.
        all.min_by_key(|&step| differs(step))
    }
}
