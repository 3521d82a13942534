//! An instance as searches see it: of its moments only those that matter.

mod moments;

use crate::instance::Instance;
use moments::stretches;

/// See the module's documentation; the same for every capacity and ranking.
pub(crate) struct Problem {
    /// No placement is lower.
    pub(crate) bound: u64,
    pub(crate) sizes: Vec<u64>,
    /// Of each block the moments, half-open, at which most live; one or two stretches.
    pub(crate) stretches: Vec<Vec<(usize, usize)>>,
    /// Of each block, those that live at the same time.
    pub(crate) neighbours: Vec<Vec<u32>>,
    /// Of each moment, the bytes that live then.
    pub(crate) loads: Vec<u64>,
    /// All blocks, sorted by their begin.
    pub(crate) blocks: Vec<u32>,
}

impl Problem {
    pub(crate) fn of(instance: &Instance) -> Self {
        let sizes: Vec<u64> = instance.blocks.iter().map(|block| block.size).collect();
        let (stretches, moments) = stretches(instance);
        let mut loads = vec![0; moments];
        for (&size, own) in sizes.iter().zip(&stretches) {
            for &(from, to) in own {
                loads[from..to].iter_mut().for_each(|load| *load += size);
            }
        }
        let every = 0..u32::try_from(sizes.len()).expect("checked by the instance");
        let meet = |one: u32, other: u32| {
            instance.lifetimes.of(one).any(|one| {
                let mut others = instance.lifetimes.of(other);
                others.any(|other| one.lower < other.upper && other.lower < one.upper)
            })
        };
        let neighbours = every
            .clone()
            .map(|one| {
                let others = every.clone().filter(|&other| other != one);
                others.filter(|&other| meet(one, other)).collect()
            })
            .collect();
        let mut blocks: Vec<u32> = every.collect();
        blocks.sort_by_key(|&block| stretches[block as usize][0]);
        Self {
            bound: instance.lower_bound(),
            sizes,
            stretches,
            neighbours,
            loads,
            blocks,
        }
    }
}

/// The first moment from this one on that no block covers yet: `bare` has of each moment a later one, or itself while none
/// does.
pub(crate) fn first_bare(bare: &mut [usize], moment: usize) -> usize {
    let mut found = moment;
    while bare[found] != found {
        found = bare[found];
    }
    let mut at = moment;
    while bare[at] != found {
        at = std::mem::replace(&mut bare[at], found);
    }
    found
}
