//! An instance as searches see it: of its moments only those that matter.
//!
//! Where nothing begins, all that lives also lived the moment before; where nothing ends next, it also
//! lives the moment after. So only those matter that begin something and are followed by an end.

use crate::instance::Instance;

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
        Self { bound: instance.lower_bound(), sizes, stretches, neighbours, loads, blocks }
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

/// Lifetimes in moments that matter, and how many those are: a moment whose blocks all live at
/// another one, too, says nothing more.
fn stretches(instance: &Instance) -> (Vec<Vec<(usize, usize)>>, usize) {
    let moments = instance.moments as usize;
    let (mut begins, mut ends) = (vec![false; moments], vec![false; moments]);
    let every = 0..u32::try_from(instance.blocks.len()).expect("checked by the instance");
    for piece in every.clone().flat_map(|block| instance.lifetimes.of(block)) {
        begins[piece.lower as usize] = true;
        ends[piece.upper as usize] = true;
    }
    // Of each moment, how many before it matter.
    let mut before = vec![0; moments + 1];
    for moment in 0..moments {
        let matters = begins[moment] && ends.get(moment + 1).copied().unwrap_or(false);
        before[moment + 1] = before[moment] + usize::from(matters);
    }
    let stretches = every
        .map(|block| {
            instance
                .lifetimes
                .of(block)
                .map(|piece| (before[piece.lower as usize], before[piece.upper as usize]))
                .collect()
        })
        .collect();
    (stretches, before[moments])
}
