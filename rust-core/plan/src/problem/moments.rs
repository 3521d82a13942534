//! The moments at which most lives.
//!
//! Where nothing begins, all that lives also lived the moment before; where nothing ends next, it also
//! lives the moment after. So only those matter that begin something and are followed by an end.

use crate::instance::Instance;

/// Lifetimes in moments that matter, and how many those are: a moment whose blocks all live at
/// another one, too, says nothing more.
pub(super) fn stretches(instance: &Instance) -> (Vec<Vec<(usize, usize)>>, usize) {
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
