//! The tree against an array of bools, and special cases.

use super::*;
use proptest::prelude::*;

/// Takes the leftmost run of `length`.
fn take(tree: &mut BuddyTree, length: u32) -> Option<u32> {
    let start = tree.find(length)?;
    tree.take(start..start + length);
    Some(start)
}

/// The same by walking bit by bit.
fn first_fit(bits: &[bool], length: u32) -> Option<u32> {
    let mut run = 0;
    let end = bits.iter().position(|free| {
        run = if *free { run + 1 } else { 0 };
        run == length
    })?;
    Some(end as u32 + 1 - length)
}

#[test]
fn any_length_works_and_nothing_beyond_it_is_free() {
    for granules in [1, 2, 63, 64, 65, 127, 128, 129, 1000, 4096, 256_000] {
        let mut tree = BuddyTree::new(granules);
        assert_eq!(tree.longest(), granules);
        assert_eq!(tree.find(granules + 1), None);
        assert_eq!(take(&mut tree, granules), Some(0));
        assert_eq!(tree.longest(), 0);
        tree.free(0..granules);
        assert_eq!(tree.longest(), granules);
    }
}

#[test]
fn no_room_is_lost_to_alignment() {
    // 129.5 MiB is 33152 granules; power-of-two buddies would fit 4 in 1 GiB.
    let mut tree = BuddyTree::new(1 << 18);
    for n in 0..7 {
        assert_eq!(take(&mut tree, 33_152), Some(n * 33_152));
    }
    assert_eq!(take(&mut tree, 33_152), None);
    assert_eq!(tree.longest(), (1 << 18) - 7 * 33_152);
}

#[test]
fn a_freed_range_merges_with_both_neighbours() {
    let mut tree = BuddyTree::new(1000);
    tree.take(0..1000);
    tree.free(100..200);
    tree.free(300..400);
    assert_eq!(tree.longest(), 100);
    tree.free(200..300);
    assert_eq!(tree.longest(), 300);
    assert_eq!(tree.find(300), Some(100));
}

#[test]
fn splitting_a_plain_buddy_rewrites_its_stale_children() {
    let mut tree = BuddyTree::new(512);
    tree.take(3..5); // the leaves below are written
    tree.free(3..5); // merged: the root is plain, what is below is stale
    tree.take(0..512);
    tree.free(65..66); // splits the taken root
    assert_eq!((tree.longest(), tree.find(1)), (1, Some(65)));
}

#[test]
fn there_is_nothing_taken_beyond_the_span() {
    let mut tree = BuddyTree::new(128);
    assert_eq!(tree.first_taken(0), None);
    tree.take(127..128);
    assert_eq!(tree.first_taken(0), Some(127));
    assert_eq!(tree.first_taken(127), Some(127));
    assert_eq!(tree.first_taken(128), None);
    assert_eq!(tree.first_taken(u32::MAX), None);
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
