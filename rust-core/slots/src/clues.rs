//! The steps of a lane by the sizes that lead up to them: where a lane that is lost may be.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A lost lane looks for its place by so many sizes.
pub(crate) const CLUE: usize = 3;

/// A hash of the sizes up to each step, and the step, sorted.
#[derive(Clone, Debug)]
pub(crate) struct Clues(Vec<(u64, u32)>);

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
        let mut clues: Vec<_> = straight.chain(around).collect();
        clues.sort_unstable();
        Self(clues)
    }

    /// The steps that these sizes lead up to.
    pub(crate) fn places(&self, sizes: [usize; CLUE]) -> impl Iterator<Item = usize> {
        let clue = hash(sizes);
        let first = self.0.partition_point(|it| it.0 < clue);
        let places = self.0[first..].iter().take_while(move |it| it.0 == clue);
        places.map(|it| it.1 as usize)
    }
}

fn hash(sizes: [usize; CLUE]) -> u64 {
    let mut hasher = DefaultHasher::new();
    sizes.hash(&mut hasher);
    hasher.finish()
}
