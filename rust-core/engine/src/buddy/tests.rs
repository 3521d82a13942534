//! The tree against an array of bools.

use super::*;
use proptest::prelude::*;

/// The leftmost run of `length`, by walking bit by bit.
fn first_fit(bits: &[bool], length: u32) -> Option<u32> {
    let mut run = 0;
    let end = bits.iter().position(|free| {
        run = if *free { run + 1 } else { 0 };
        run == length
    })?;
    Some(end as u32 + 1 - length)
}

proptest! {
    /// Random ranges against an array of bools, which cannot merge wrongly.
    #[test]
    fn the_tree_equals_a_bitmap(
        granules in prop_oneof![1u32..300, 300u32..3000],
        steps in prop::collection::vec((any::<u32>(), any::<u32>(), any::<bool>()), 1..80),
        wanted in prop::collection::vec(1u32..3000, 6),
    ) {
        let mut tree = BuddyTree::new(granules);
        let mut bits = vec![true; granules as usize];
        for (at, length, short) in steps {
            // The run of equal granules from `at` on, at most `length` of them.
            let from = (at % granules) as usize;
            let free = bits[from];
            let length = (length % if short { 9 } else { granules }) as usize + 1;
            let to = from + bits[from..].iter().take(length).take_while(|b| **b == free).count();
            bits[from..to].fill(!free);
            if free {
                tree.take(from as u32..to as u32);
            } else {
                tree.free(from as u32..to as u32);
            }
            for &length in wanted.iter().chain(&[1, 2, 5]) {
                prop_assert_eq!(tree.find(length), first_fit(&bits, length));
            }
            for from in [0, at % granules, from as u32, to as u32] {
                let taken = bits.iter().skip(from as usize).position(|free| !free);
                // Granules beyond the end are taken, if the tree spans any.
                let end = Some(granules).filter(|end| *end < tree.span());
                let expected = taken.map_or(end, |taken| Some(from + taken as u32));
                prop_assert_eq!(tree.first_taken(from), expected);
            }
            let longest = bits.split(|bit| !bit).map(<[bool]>::len).max().unwrap_or(0);
            prop_assert_eq!(tree.longest() as usize, longest);
        }
    }
}
