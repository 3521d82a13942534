//! Which request of one iteration is which of another, by the order of their sizes.
//!
//! The n-th request of a size is taken for the n-th of that size. Of those pairs the longest chain that
//! keeps the order counts; between two of its links, equal sizes are paired in order. Linear but for
//! the chain, which takes O(n log n).

use std::collections::HashMap;

/// Of a request that has no partner.
pub(super) const NONE: u32 = u32::MAX;

/// How many requests are looked over for an equal size between two links.
const LOOK_AHEAD: usize = 16;

/// For each of `reference`, its partner's place in `other`, or [`NONE`].
pub(super) fn align(reference: &[u32], other: &[u32]) -> Vec<u32> {
    let mut partner = vec![NONE; reference.len()];
    let same = |pair: &(&u32, &u32)| pair.0 == pair.1;
    let head = reference.iter().zip(other).take_while(same).count();
    let (a, b) = (&reference[head..], &other[head..]);
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(same).count();
    for (place, partner) in (0..).zip(&mut partner[..head]) {
        *partner = place;
    }
    for place in 0..tail {
        partner[reference.len() - 1 - place] = (other.len() - 1 - place) as u32;
    }
    let (a, b) = (&a[..a.len() - tail], &b[..b.len() - tail]);
    let mut link = (0, 0);
    let ends = [(a.len(), b.len())];
    for (i, j) in chain(&pairs(a, b)).into_iter().chain(ends) {
        between(a, b, link, (i, j), |i, j| {
            partner[head + i] = (head + j) as u32;
        });
        if i < a.len() {
            partner[head + i] = (head + j) as u32;
        }
        link = (i + 1, j + 1);
    }
    partner
}

/// Pairs the n-th request of each size with the n-th of that size.
fn pairs(a: &[u32], b: &[u32]) -> Vec<(usize, usize)> {
    let mut places: HashMap<u32, (usize, Vec<usize>)> = HashMap::new();
    for (place, &size) in b.iter().enumerate() {
        places.entry(size).or_default().1.push(place);
    }
    let mut pairs = Vec::new();
    for (i, size) in a.iter().enumerate() {
        if let Some((next, places)) = places.get_mut(size)
            && let Some(&j) = places.get(*next)
        {
            *next += 1;
            pairs.push((i, j));
        }
    }
    pairs
}

/// The longest chain of pairs that rises on both sides. They rise on the first already.
fn chain(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // `ends[n]`: of the chains of n + 1 pairs, the one that ends lowest, by its last pair.
    let mut ends: Vec<usize> = Vec::new();
    let mut before = vec![usize::MAX; pairs.len()];
    for (at, &(_, j)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].1 < j);
        if length > 0 {
            before[at] = ends[length - 1];
        }
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut links = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied().unwrap_or(usize::MAX);
    while at != usize::MAX {
        links.push(pairs[at]);
        at = before[at];
    }
    links.reverse();
    links
}

/// Pairs equal sizes from `from` to `to`, in order.
fn between(a: &[u32], b: &[u32], from: (usize, usize), to: (usize, usize), mut pair: impl FnMut(usize, usize)) {
    let mut next = from.1;
    for (i, &size) in (from.0..).zip(&a[from.0..to.0]) {
        let mut near = next..to.1.min(next + LOOK_AHEAD);
        if let Some(j) = near.find(|&j| b[j] == size) {
            pair(i, j);
            next = j + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_find_their_partners_and_one_that_is_missing_shifts_no_other() {
        assert_eq!(align(&[1, 2, 3], &[1, 2, 3]), [0, 1, 2]);
        assert_eq!(align(&[1, 2, 3], &[1, 9, 3]), [0, NONE, 2]);
        assert_eq!(align(&[1, 2, 3, 4], &[1, 3, 4]), [0, NONE, 1, 2]);
        assert_eq!(align(&[1, 3, 4], &[7, 1, 2, 3, 4]), [1, 3, 4]);
        assert_eq!(align(&[], &[1]), [0; 0]);
        assert_eq!(align(&[1], &[]), [NONE]);
        let all: Vec<u32> = (0..100).map(|at| at % 7).collect();
        let mut less = all.clone();
        less.remove(50);
        let partner = align(&all, &less);
        let right = (0..100).filter(|&at| partner[at] == if at < 50 { at as u32 } else { at as u32 - 1 });
        assert!(right.count() >= 92, "{partner:?}");
    }
}
