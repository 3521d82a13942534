//! Exact growth, with threads whose phases begin and end together and differ in size: hardly more than
//! the largest set is pinned at the end.

use pinbuddy_replay::GIB;
use pinbuddy_replay::programs::{Case, Cell, Setting, Shape, Sizes};
use pinbuddy_replay::workload::Random;
use pinbuddy_replay::world::Machine;

const ROUNDS: usize = 300;

fn rounds(seed: u64, threads: u8, blocks: u8, computes: u32) -> Case {
    let mut random = Random::new(seed);
    let length = ROUNDS * usize::from(threads) * usize::from(blocks);
    let cell = |it: u64| -> Cell { (it as u16, 0, (it >> 16) as u8, 0) };
    Case {
        shape: Shape {
            sizes: Sizes::Rounds(blocks),
            live: 64 * GIB,
            threads,
            holders: 0,
            clears: 0,
            computes,
            streams: 0,
            stuck: 0,
            captures: 0,
        },
        tape: (0..length).map(|_| cell(random.draw())).collect(),
        machine: Machine::paced(500_000, 10),
        setting: Setting::Exact,
    }
}

/// The most over these seeds: bytes pinned at the end over the largest set, and pins.
fn worst(threads: u8, blocks: u8, computes: u32) -> (f64, u64) {
    let mut worst = (0.0, 0);
    for seed in 1..=40 {
        let (ours, _) = rounds(seed, threads, blocks, computes).run(false).unwrap();
        let over = ours.pinned_at_end as f64 / ours.largest_set as f64;
        let pins = *ours.pins.last().unwrap();
        worst = (f64::max(worst.0, over), worst.1.max(pins));
    }
    worst
}

#[test]
fn what_is_pinned_at_the_end_is_hardly_more_than_the_largest_set() {
    for threads in [1, 2, 4] {
        for blocks in [1, 6] {
            for computes in [0, 1000] {
                let (over, pins) = worst(threads, blocks, computes);
                // Ten phases are learnt from; then a larger set comes a few times.
                let most = 20 * u64::from(threads) * u64::from(blocks).max(2);
                assert!(
                    over <= 1.1 && pins <= most,
                    "{threads} threads, {blocks} blocks, {computes} us: {over:.2}, {pins} pins"
                );
            }
        }
    }
}
