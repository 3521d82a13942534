//! Full instances that are put together again, and blocks at random.

use proptest::prelude::*;

use super::Joined;
use crate::check;
use crate::instance::{Block, Instance};

fn block(lower: u64, upper: u64, size: u64) -> Block {
    Block { lower, upper, size }
}

/// Five blocks around each other, which no straight cut parts.
fn wheel(at: u64, scale: u64) -> [Block; 5] {
    let b = |lower, upper, size| block(at + lower, at + upper, size * scale);
    [b(0, 3, 20), b(3, 5, 30), b(2, 5, 10), b(0, 2, 20), b(2, 3, 10)]
}

/// Where the only block that is left puts all of them.
fn all_as_one(blocks: &[Block]) -> Vec<u64> {
    let instance = Instance::new(blocks.to_vec()).expect("valid");
    let joined = Joined::of(&instance, &|| false).expect("some are joined");
    let left = joined.instance.blocks();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].size, instance.lower_bound());
    joined.offsets(&[0])
}

#[test]
fn what_hands_on_to_each_other_is_one_block() {
    // Beside each other, and on each other.
    let mut blocks = wheel(0, 1).to_vec();
    blocks.extend(wheel(5, 1));
    blocks.extend([block(0, 10, 7), block(0, 4, 6), block(4, 10, 6)]);
    let offsets = all_as_one(&blocks);
    assert_eq!(check(&blocks, None, &offsets).expect("a placement"), 53);
}

#[test]
fn blocks_that_hand_nothing_on_or_live_across_a_periods_end_stay_apart() {
    let apart = Instance::new(vec![block(0, 3, 5), block(3, 6, 4), block(1, 4, 2)]);
    let across = Instance::cyclic(vec![block(0, 4, 5), block(4, 8, 5), block(6, 12, 3)], 0..10);
    for instance in [apart, across] {
        assert!(Joined::of(&instance.expect("valid"), &|| false).is_none());
    }
}

proptest! {
    #[test]
    fn a_placement_of_what_was_joined_is_one_of_all(
        seeds in prop::collection::vec((0_u64..8, 1_u64..8, 1_u64..4), 1..40),
    ) {
        let blocks: Vec<Block> = seeds.into_iter().map(|(at, length, size)| block(at, at + length, size)).collect();
        let instance = Instance::new(blocks.clone()).expect("valid");
        if let Some(joined) = Joined::of(&instance, &|| false) {
            prop_assert!(joined.instance.blocks().len() < blocks.len());
            prop_assert_eq!(joined.instance.lower_bound(), instance.lower_bound());
            // One on the other, whenever they live.
            let ends = joined.instance.blocks().iter().scan(0, |end, it| {
                *end += it.size;
                Some(*end - it.size)
            });
            let offsets = joined.offsets(&ends.collect::<Vec<_>>());
            check(&blocks, None, &offsets).expect("a placement");
        }
    }
}
