//! The engine's three ways to serve: a split and a merge among many free blocks, a steady hit, and
//! churn.
//!
//! `cargo bench -p pinbuddy-core --bench engine`; `-- hit` for a name. `scaling` shows in one table how
//! costs grow; `ci/instructions.sh` counts instructions, without noise.

mod pool;

use std::hint::black_box;

use divan::Bencher;
use pinbuddy_core::{Block, Engine, GRANULE};

use pool::{engine, take};

const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

fn main() {
    divan::main();
}

/// A block cut behind so many free granules, each between taken ones, and merged again.
#[divan::bench(args = [100, 1_000, 10_000, 100_000, 1_000_000])]
fn split_and_merge(bencher: Bencher, free: usize) {
    let mut engine = engine(16 * GIB, 1);
    let blocks: Vec<Block> = (0..2 * free).map(|_| take(&mut engine, GRANULE)).collect();
    for block in blocks.iter().step_by(2) {
        engine.release(*block).unwrap();
    }
    bencher.bench_local(|| pair(&mut engine, 2 * GRANULE));
}

/// The same request again and again, with eight segments and nothing else in them.
#[divan::bench(args = [4 << 10, 1 << 20, 8 << 20, 64 << 20, 259 << 19])]
fn hit(bencher: Bencher, bytes: usize) {
    let mut engine = engine(GIB, 8);
    bencher.bench_local(|| pair(&mut engine, bytes));
}

/// A block that is deferred, as if a stream still used it, before it is released.
#[divan::bench]
fn hit_with_an_event(bencher: Bencher) {
    let mut engine = engine(GIB, 8);
    bencher.bench_local(|| {
        let block = take(&mut engine, 64 * MIB);
        engine.defer(block).unwrap();
        engine.release(black_box(block)).unwrap();
    });
}

/// So many blocks of 4 to 32 MiB live; one is released and another of another size taken.
#[divan::bench(args = [10, 100, 1_000], sample_size = 1_000)]
fn churn(bencher: Bencher, live: usize) {
    let mut engine = engine(GIB, live.div_ceil(16));
    let mut random = 1_u64;
    let mut draw = move |end: usize| {
        // Xorshift: enough to scatter.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % end as u64) as usize
    };
    let mut blocks: Vec<Block> = (0..live)
        .map(|_| take(&mut engine, (4 + draw(29)) * MIB))
        .collect();
    bencher.bench_local(|| {
        let place = draw(live);
        engine.release(blocks[place]).unwrap();
        blocks[place] = take(&mut engine, (4 + draw(29)) * MIB);
    });
}

fn pair(engine: &mut Engine, bytes: usize) {
    let block = take(engine, bytes);
    engine.release(black_box(block)).unwrap();
}
