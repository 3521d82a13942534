//! The steps of a lane by the sizes that lead up to them: where a lane that is lost may be.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A lost lane looks for its place by so many sizes.
pub(crate) const CLUE: usize = 3;

/// Of steps that are led up to by the same sizes, so many on either side are looked at. A plan of a whole run has thousands of them, each a
/// step away, and a lane that has lost its place looks with every request.
const MOST: usize = 32;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Clues {
    /// A hash of the sizes up to each step, and the step, sorted.
    hashes: Vec<(u64, u32)>,
    /// The sizes of all steps, sorted.
    sizes: Vec<usize>,
}

impl Clues {
    /// Of steps with these sizes, whose period begins with this one.
    pub(crate) fn new(sizes: &[usize], period: usize) -> Self {
        let straight = (CLUE - 1..sizes.len()).map(|at| {
            let clue = hash([sizes[at - 2], sizes[at - 1], sizes[at]]);
            (clue, at as u32)
        });
        // A period's first steps follow its last ones.
        let length = sizes.len() - period;
        let back = |at: usize, by: usize| sizes[period + (at + 2 * length - by) % length];
        let around = (0..length.min(CLUE - 1)).map(|at| {
            let clue = hash([back(at, 2), back(at, 1), back(at, 0)]);
            (clue, (period + at) as u32)
        });
        let mut hashes: Vec<_> = straight.chain(around).collect();
        hashes.sort_unstable();
        let mut sizes = sizes.to_vec();
        sizes.sort_unstable();
        sizes.dedup();
        Self { hashes, sizes }
    }

    /// Whether any step has this size.
    pub(crate) fn has(&self, size: usize) -> bool {
        self.sizes.binary_search(&size).is_ok()
    }

    /// The steps that these sizes lead up to, as far as their hashes say; the nearest to this one of many. Who takes one has to compare
    /// its size.
    pub(crate) fn places(&self, sizes: [usize; CLUE], near: usize) -> impl Iterator<Item = usize> {
        let clue = hash(sizes);
        let (before, behind) = self.hashes.split_at(self.hashes.partition_point(|it| *it < (clue, near as u32)));
        let is_alike = move |it: &&(u64, u32)| it.0 == clue;
        let before = before.iter().rev().take(MOST).take_while(is_alike);
        let behind = behind.iter().take(MOST).take_while(is_alike);
        before.chain(behind).map(|it| it.1 as usize)
    }

    /// As if these sizes had the hash of those that lead up to a step.
    #[cfg(test)]
    pub(crate) fn mistake(&mut self, sizes: [usize; CLUE], step: u32) {
        self.hashes.push((hash(sizes), step));
        self.hashes.sort_unstable();
    }
}

fn hash(sizes: [usize; CLUE]) -> u64 {
    let mut hasher = DefaultHasher::new();
    sizes.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_steps_alike_the_nearest_are_found() {
        let clues = Clues::new(&[4096; 10_000], 0);
        let found: Vec<usize> = clues.places([4096; CLUE], 7000).collect();
        assert_eq!(found.len(), 2 * MOST);
        assert!(found.contains(&7000) && found.contains(&6999) && found.iter().all(|it| it.abs_diff(7000) <= MOST));
        let few = Clues::new(&[4096, 8192, 4096, 8192, 4096], 0);
        assert_eq!(few.places([4096, 8192, 4096], 0).collect::<Vec<_>>(), [2, 4]);
    }
}
