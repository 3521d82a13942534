//! Instances that fill a rectangle without a gap are put together again: no search places so many blocks one by one.
#![allow(clippy::expect_used, reason = "tests")]

use std::time::{Duration, Instant};

use pinbuddy_plan::{Block, Effort, Instance, check, solve};

/// Many times longer than it takes on a busy machine; without joining, some per cent are missing after it.
const LIMIT: Duration = Duration::from_secs(20);
const SIDE: u64 = 1 << 20;

/// A square that is cut at random into so many blocks, the largest first.
fn cut(count: usize, mut state: u64) -> Vec<Block> {
    let mut within = |from: u64, to: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        from + (state >> 33) % (to - from)
    };
    let (lower, upper, size) = (0, SIDE, SIDE);
    let mut blocks = vec![Block { lower, upper, size }];
    while blocks.len() < count {
        let area = |it: &Block| (it.upper - it.lower) * it.size;
        let largest = (0..blocks.len()).max_by_key(|&it| area(&blocks[it]));
        let block = blocks.swap_remove(largest.expect("there is one"));
        let length = block.upper - block.lower;
        let [mut one, mut other] = [block; 2];
        if within(0, length + block.size) < length {
            one.upper = within(block.lower + length / 8, block.upper - length / 8);
            other.lower = one.upper;
        } else {
            one.size = within(block.size / 8, block.size - block.size / 8);
            other.size = block.size - one.size;
        }
        blocks.extend([one, other]);
    }
    blocks
}

#[test]
fn a_square_that_was_cut_up_is_put_together_again() {
    for seed in 1..=3 {
        let blocks = cut(300, seed);
        let instance = Instance::new(blocks.clone()).expect("valid");
        let begin = Instant::now();
        let effort = Effort { joins: true, threads: 1, stop: &|| begin.elapsed() > LIMIT, seen: &|_| {} };
        let solution = solve(&instance, effort);
        let peak = check(&blocks, None, &solution.offsets).expect("a placement");
        assert_eq!(peak, SIDE, "seed {seed}");
    }
}
