//! Placements are placements, however blocks live; small ones are the best there are.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pinbuddy_plan::{Block, Effort, Error, Instance, Overlap, check, solve};
use proptest::prelude::*;

fn blocks(most: usize, moments: u64) -> impl Strategy<Value = Vec<Block>> {
    let block = (0..moments, 1..=moments, 1_u64..20);
    let block = block.prop_map(|(lower, length, size)| Block { lower, upper: lower + length, size });
    // Nothing to place needs nothing, too.
    prop::collection::vec(block, 0..=most)
}

fn instance(blocks: &[Block], period: Option<u64>) -> Result<Instance, Error> {
    match period {
        Some(period) => Instance::cyclic(blocks.to_vec(), 0..period),
        None => Instance::new(blocks.to_vec()),
    }
}

/// Solves with so many questions whether to stop.
fn solved(instance: &Instance, questions: usize) -> pinbuddy_plan::Solution {
    let asked = AtomicUsize::new(0);
    solve(
        instance,
        Effort { joins: true, threads: 2, stop: &|| asked.fetch_add(1, Ordering::Relaxed) >= questions, seen: &|_| {} },
    )
}

/// Do two blocks live at the same time? Moment by moment.
fn meet(a: &Block, b: &Block, period: Option<u64>) -> bool {
    let moments = |block: &Block| {
        let moments = (block.lower..block.upper).map(|moment| period.map_or(moment, |p| moment % p));
        moments.collect::<std::collections::BTreeSet<_>>()
    };
    !moments(a).is_disjoint(&moments(b))
}

fn overlap(blocks: &[Block], period: Option<u64>, offsets: &[u64]) -> bool {
    (0..blocks.len()).any(|a| {
        (0..a).any(|b| {
            meet(&blocks[a], &blocks[b], period)
                && offsets[a] < offsets[b] + blocks[b].size
                && offsets[b] < offsets[a] + blocks[a].size
        })
    })
}

/// The least peak of lowest first fit over all orders: the best there is.
fn best(blocks: &[Block], period: Option<u64>) -> u64 {
    fn go(blocks: &[Block], period: Option<u64>, placed: &mut Vec<(usize, u64)>, peak: u64) -> u64 {
        if placed.len() == blocks.len() {
            return peak;
        }
        let mut least = u64::MAX;
        for next in 0..blocks.len() {
            if placed.iter().any(|&(block, _)| block == next) {
                continue;
            }
            let mut taken: Vec<(u64, u64)> = placed
                .iter()
                .filter(|&&(block, _)| meet(&blocks[block], &blocks[next], period))
                .map(|&(block, offset)| (offset, offset + blocks[block].size))
                .collect();
            taken.sort_unstable();
            let mut at = 0;
            for (from, to) in taken {
                if from >= at + blocks[next].size {
                    break;
                }
                at = at.max(to);
            }
            placed.push((next, at));
            least = least.min(go(blocks, period, placed, peak.max(at + blocks[next].size)));
            placed.pop();
        }
        least
    }
    go(blocks, period, &mut Vec::new(), 0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Of a period, what lives across its end overlaps nothing at its begin.
    #[test]
    fn a_solution_is_a_placement_and_no_lower_than_the_bound(line in blocks(120, 60), circle in blocks(60, 30)) {
        for (blocks, period) in [(line, None), (circle, Some(30))] {
            let instance = instance(&blocks, period).expect("valid");
            let solution = solved(&instance, 40);
            let peak = check(&blocks, period.map(|it| 0..it), &solution.offsets).expect("a placement");
            prop_assert_eq!(peak, solution.peak);
            prop_assert!(!overlap(&blocks, period, &solution.offsets));
            prop_assert!(peak >= instance.lower_bound());
            // That is the most that lives at a moment.
            let at = |moment| -> u64 {
                let dot = Block { lower: moment, upper: moment + 1, size: 1 };
                blocks.iter().filter(|block| meet(block, &dot, period)).map(|block| block.size).sum()
            };
            let most = blocks.iter().map(|it| at(it.lower)).max();
            prop_assert_eq!(instance.lower_bound(), most.unwrap_or(0));
        }
    }

    #[test]
    fn few_blocks_are_placed_as_well_as_can_be(blocks in blocks(6, 8), cyclic: bool) {
        let period = cyclic.then_some(8);
        let instance = instance(&blocks, period).expect("valid");
        let solution = solved(&instance, 100_000);
        prop_assert_eq!(solution.peak, best(&blocks, period));
        prop_assert_eq!(solution.bound, solution.peak, "and that is known");
    }

    #[test]
    fn the_checker_says_what_moment_by_moment_says(
        blocks in blocks(12, 12),
        offsets in prop::collection::vec(0_u64..60, 12),
        cyclic: bool,
    ) {
        let period = cyclic.then_some(12);
        let offsets = &offsets[..blocks.len()];
        let found = check(&blocks, period.map(|it| 0..it), offsets);
        prop_assert_eq!(found.is_err(), overlap(&blocks, period, offsets), "{:?}", found);
    }
}

#[test]
fn blocks_that_cannot_be_are_refused_by_their_number() {
    let good = Block { lower: 0, upper: 1, size: 1 };
    let refused = |block, period| instance(&[good, block], period).expect_err("refused");
    let block = |lower, upper, size| Block { lower, upper, size };
    assert_eq!(refused(block(3, 3, 1), None), Error::Lifetime(1, 3, 3));
    assert_eq!(refused(block(0, 1, 0), None), Error::Empty(1));
    assert_eq!(refused(block(0, 1, u64::MAX), None), Error::Bytes(1));
    assert_eq!(refused(block(5, 6, 1), Some(5)), Error::Period(1, 5, 6, 0, 5));
    assert_eq!(refused(block(1, 7, 1), Some(5)), Error::Period(1, 1, 7, 0, 5));
    let beyond = check(&[good], None, &[u64::MAX]);
    assert_eq!(beyond, Err(Overlap::Beyond(0)));
    assert_eq!(check(&[good], None, &[]), Err(Overlap::Count(1, 0)));
}

/// A process of its own, in which a thread would need a stack larger than all addresses.
#[test]
fn blocks_are_placed_where_no_other_thread_starts() {
    let child = std::env::var_os("RUST_MIN_STACK").is_some();
    if !child {
        let name = "placement::blocks_are_placed_where_no_other_thread_starts";
        let mut command = Command::new(std::env::current_exe().expect("this program's file"));
        let command = command.args(["--exact", name, "--test-threads=1"]);
        let ended = command.env("RUST_MIN_STACK", (1_u64 << 60).to_string());
        let output = ended.output().expect("a process");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    assert!(std::thread::Builder::new().spawn(|| {}).is_err());
    for moments in [20, 2_000] {
        let block = |lower| Block { lower, upper: lower + 7, size: 1 + lower % 5 };
        let blocks: Vec<_> = (0..moments).map(block).collect();
        let instance = Instance::new(blocks.clone()).expect("blocks");
        let found = solved(&instance, 100);
        assert_eq!(check(&blocks, None, &found.offsets), Ok(found.peak));
    }
}

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

/// No search places so many blocks one by one.
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
