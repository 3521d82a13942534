//! What a request and its release cost, beside ever more other segments and blocks.
//!
//! Plain `std::time`, median of rounds, ns per request + release. Addresses are numbers, so a
//! 16 GiB segment costs its bookkeeping only. Run: `cargo bench -p pinbuddy-core --bench scaling`.

mod pool;

use pinbuddy_core::{Block, Engine, GRANULE, SMALL};
use pool::{adopt, engine, take};
use std::hint::black_box;
use std::time::Instant;

const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;
const ROUNDS: usize = 9;
const PAIRS: usize = 50_000;

fn main() {
    // `cargo test --benches` runs this too, in debug mode, only to see that it works.
    let pairs = if cfg!(debug_assertions) { 100 } else { PAIRS };
    fresh(pairs);
    free_blocks(pairs);
    live_blocks(pairs);
    segments(pairs);
    dedicated(pairs);
}

/// Splitting and merging in a nearly empty segment.
fn fresh(pairs: usize) {
    println!(
        "1 GiB segment, ns per pair{:>14}{:>14}",
        "alone", "after an odd"
    );
    for (name, bytes) in [
        ("4 KiB", 4096),
        ("1 MiB", MIB),
        ("8 MiB", 8 * MIB),
        ("64 MiB", 64 * MIB),
        ("129.5 MiB", 129 * MIB + MIB / 2),
        ("1000 MiB", 1000 * MIB),
    ] {
        let mut engine = engine(GIB, 1);
        let alone = pair(&mut engine, bytes, pairs);
        // A block of the same class, so that no large block starts where a buddy does.
        let odd = if bytes < SMALL {
            GRANULE
        } else {
            SMALL + GRANULE
        };
        take(&mut engine, odd);
        let after = pair(&mut engine, bytes, pairs);
        println!("{name:>26}{alone:>14.1}{after:>14.1}");
    }
}

/// Holes of one granule between blocks of one granule: the worst fragmentation.
fn free_blocks(pairs: usize) {
    println!(
        "\n16 GiB segment, ns per pair{:>13}{:>14}{:>14}",
        "4 KiB", "8 KiB", "3 MiB"
    );
    for holes in [100, 1_000, 4_096, 10_000, 65_536, 1_000_000] {
        let mut engine = engine(16 * GIB, 1);
        let blocks: Vec<Block> = (0..2 * holes).map(|_| take(&mut engine, GRANULE)).collect();
        for block in blocks.iter().step_by(2) {
            engine.release(*block).unwrap();
        }
        // The first sits in the first hole, the others behind the last.
        let [hole, behind, large] =
            [GRANULE, 2 * GRANULE, 3 * MIB].map(|bytes| pair(&mut engine, bytes, pairs));
        println!(
            "{:>27}{hole:>13.1}{behind:>14.1}{large:>14.1}",
            format!("{holes} free")
        );
    }
}

/// A random block is released and one of its size taken: each access is elsewhere in the bookkeeping.
fn live_blocks(pairs: usize) {
    println!("\n16 GiB segment, ns per pair{:>13}", "random");
    for live in [100, 1_000, 10_000, 100_000, 1_000_000] {
        let mut engine = engine(16 * GIB, 1);
        let mut random = Random(live as u64);
        let mut blocks: Vec<Block> = (0..live)
            .map(|_| take(&mut engine, (1 + random.below(4)) * GRANULE))
            .collect();
        let ns = median(pairs, || {
            let place = random.below(blocks.len());
            let block = blocks[place];
            engine.release(block).unwrap();
            blocks[place] = take(&mut engine, block.bytes);
        });
        println!("{:>27}{ns:>13.1}", format!("{live} live"));
    }
}

/// Many segments with free runs of 4 MiB, and an idle one, which serves all of these: 64 MiB, which skip
/// the others; 8 MiB, after a scan of them; 4 KiB, since the others are for large blocks.
fn segments(pairs: usize) {
    println!(
        "\n64 MiB segments, ns per pair{:>12}{:>14}{:>14}{:>14}",
        "64 MiB", "8 MiB", "4 MiB", "4 KiB"
    );
    for count in [1, 8, 64, 512] {
        let mut engine = engine(64 * MIB, count);
        let blocks: Vec<Block> = (0..16 * count)
            .map(|_| take(&mut engine, 4 * MIB))
            .collect();
        let (others, last) = blocks.split_at(16 * (count - 1));
        for block in others.iter().step_by(2).chain(last) {
            engine.release(*block).unwrap();
        }
        let [idle, scan, piece, small] =
            [64 * MIB, 8 * MIB, 4 * MIB, GRANULE].map(|bytes| pair(&mut engine, bytes, pairs));
        println!(
            "{:>28}{idle:>12.1}{scan:>14.1}{piece:>14.1}{small:>14.1}",
            format!("{count} segments")
        );
    }
}

/// Requests longer than a segment, of as many sizes as there are idle regions for them.
fn dedicated(pairs: usize) {
    println!("\nDedicated regions, ns per pair{:>10}", "any");
    for count in [1, 100, 1_000] {
        let mut engine = engine(MIB, 0);
        let bytes = |n| 2 * MIB + n * GRANULE;
        (0..count).for_each(|n| adopt(&mut engine, bytes(n)));
        let mut random = Random(count as u64);
        let ns = median(pairs, || {
            let block = take(&mut engine, bytes(random.below(count)));
            engine.release(black_box(block)).unwrap();
        });
        println!("{:>30}{ns:>10.1}", format!("{count} idle"));
    }
}

fn pair(engine: &mut Engine, bytes: usize, pairs: usize) -> f64 {
    median(pairs, || {
        let block = take(engine, bytes);
        engine.release(black_box(block)).unwrap();
    })
}

/// The median round, in ns per call; one more round goes ahead to warm up.
fn median(calls: usize, mut call: impl FnMut()) -> f64 {
    let mut rounds: Vec<f64> = (0..=ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..calls).for_each(|_| call());
            start.elapsed().as_secs_f64() * 1e9 / calls as f64
        })
        .skip(1)
        .collect();
    rounds.sort_unstable_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

/// Xorshift: enough to scatter accesses, with no dependency.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}
