//! Packings without a gap, and blocks at random.

#![allow(clippy::expect_used, reason = "tests")]

use proptest::prelude::*;

use super::{Cost, Style, search};
use crate::check;
use crate::instance::{Block, Instance};
use crate::problem::Problem;

const STYLES: [Cost; 2] = [Cost::Exponential(100.0), Cost::Reciprocal(50.0)];

fn found(instance: &Instance, capacity: u64, cost: Cost, width: usize) -> Option<Vec<u64>> {
    let style = Style {
        cost,
        width,
        guesses: 4,
    };
    search(&Problem::of(instance), capacity, style, &|| false)
}

fn block(lower: u64, upper: u64, size: u64) -> Block {
    Block { lower, upper, size }
}

/// Five blocks around each other, which no straight cut parts, `count` times in a row.
fn wheels(count: u64) -> Vec<Block> {
    let wheel = |at: u64| {
        let b = |lower, upper, size| block(5 * at + lower, 5 * at + upper, size);
        [
            b(0, 3, 20),
            b(3, 5, 30),
            b(2, 5, 10),
            b(0, 2, 20),
            b(2, 3, 10),
        ]
    };
    let mut blocks: Vec<Block> = (0..count).flat_map(wheel).collect();
    // Turned, so that the next one's blocks go on where these end.
    blocks.push(block(0, 5 * count, 7));
    blocks
}

#[test]
fn what_fits_without_a_gap_is_found() {
    let blocks = wheels(6);
    let instance = Instance::new(blocks.clone()).expect("valid");
    let bound = instance.lower_bound();
    assert_eq!(bound, 47);
    for cost in STYLES {
        let offsets = found(&instance, bound, cost, 32).expect("a placement");
        assert_eq!(check(&blocks, None, &offsets).expect("a placement"), bound);
        assert_eq!(found(&instance, bound - 1, cost, 32), None);
    }
}

#[test]
fn a_search_stops_when_it_is_told_to() {
    let instance = Instance::new(wheels(3)).expect("valid");
    let style = Style {
        cost: STYLES[0],
        width: 8,
        guesses: 4,
    };
    assert_eq!(
        search(&Problem::of(&instance), 1 << 20, style, &|| true),
        None
    );
}

proptest! {
    #[test]
    fn what_is_found_is_a_placement_within_the_capacity(
        seeds in prop::collection::vec((0_u64..30, 1_u64..30, 1_u64..20), 1..40),
        cyclic: bool,
        width in 1_usize..9,
    ) {
        let blocks: Vec<Block> = seeds.into_iter().map(|(at, length, size)| block(at, at + length, size)).collect();
        let period = cyclic.then_some(30);
        let instance = match period {
            Some(period) => Instance::cyclic(blocks.clone(), 0..period),
            None => Instance::new(blocks.clone()),
        }.expect("valid");
        let all: u64 = blocks.iter().map(|it| it.size).sum();
        for cost in STYLES {
            for capacity in [instance.lower_bound(), all] {
                if let Some(offsets) = found(&instance, capacity, cost, width) {
                    let peak = check(&blocks, period.map(|it| 0..it), &offsets).expect("a placement");
                    prop_assert!((instance.lower_bound()..=capacity).contains(&peak));
                }
            }
        }
    }
}
