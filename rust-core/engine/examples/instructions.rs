//! The program whose instructions `ci/instructions.sh` counts: `instructions SCENARIO PAIRS`.
//!
//! Each scenario prepares and then makes so many pairs of a request and a release. The difference
//! between two numbers of pairs is what the pairs cost. Nothing is random and no clock is read, so
//! every run executes the same instructions.

use std::hint::black_box;
use std::process::ExitCode;

use pinbuddy_core::{Block, Config, Decision, Engine, GRANULE, NewSegment, Region};

const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

type Scenario = fn(usize);

const SCENARIOS: [(&str, Scenario); 8] = [
    ("hit-4KiB", |pairs| hit(pairs, GRANULE)),
    ("hit-8MiB", |pairs| hit(pairs, 8 * MIB)),
    ("hit-129.5MiB", |pairs| hit(pairs, 259 * MIB / 2)),
    ("hit-event", event),
    ("hit-dedicated", |pairs| hit(pairs, 2 * GIB)),
    ("split-merge-100", |pairs| split(pairs, 100)),
    ("split-merge-10000", |pairs| split(pairs, 10_000)),
    ("churn-200", churn),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asked = match arguments.as_slice() {
        [scenario, pairs] => pairs.parse().ok().and_then(|pairs| {
            let found = SCENARIOS.iter().find(|(name, _)| name == scenario)?;
            Some((found.1, pairs))
        }),
        _ => None,
    };
    match asked {
        Some((scenario, pairs)) => scenario(pairs),
        None if arguments == ["--list"] => {
            SCENARIOS.iter().for_each(|(name, _)| println!("{name}"));
        }
        None => {
            eprintln!("usage: instructions --list | SCENARIO PAIRS");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The same request again and again.
fn hit(pairs: usize, bytes: usize) {
    let mut engine = engine(GIB, 8);
    adopt(&mut engine, 2 * GIB);
    for _ in 0..pairs {
        let block = take(&mut engine, bytes);
        engine.release(black_box(block)).expect("a live block");
    }
}

/// With a stream that still uses the block when it is freed.
fn event(pairs: usize) {
    let mut engine = engine(GIB, 8);
    for _ in 0..pairs {
        let block = take(&mut engine, 64 * MIB);
        engine.defer(block).expect("a live block");
        engine.release(black_box(block)).expect("a pending block");
    }
}

/// Behind so many free blocks.
fn split(pairs: usize, free: usize) {
    let mut engine = engine(4 * GIB, 1);
    let blocks: Vec<Block> = (0..2 * free).map(|_| take(&mut engine, GRANULE)).collect();
    for block in blocks.iter().step_by(2) {
        engine.release(*block).expect("a live block");
    }
    for _ in 0..pairs {
        let block = take(&mut engine, 2 * GRANULE);
        engine.release(black_box(block)).expect("a live block");
    }
}

/// 200 blocks of 4 to 36 MiB, replaced one after the other by blocks of other sizes.
fn churn(pairs: usize) {
    let mut engine = engine(GIB, 12);
    let size = |n: usize| (4 + n * 7 % 33) * MIB;
    let mut blocks: Vec<Block> = (0..200).map(|n| take(&mut engine, size(n))).collect();
    for n in 0..pairs {
        let place = n * 61 % blocks.len();
        engine.release(blocks[place]).expect("a live block");
        blocks[place] = take(&mut engine, size(n * 11 + 5));
    }
}

/// An engine on made-up addresses, with `count` idle segments.
fn engine(segment_bytes: usize, count: usize) -> Engine {
    let mut engine = Engine::new(Config {
        segment_bytes,
        threshold_bytes: 0,
    });
    (0..count).for_each(|_| adopt(&mut engine, segment_bytes));
    engine
}

/// One more segment, behind the others.
fn adopt(engine: &mut Engine, bytes: usize) {
    let base = (1 << 40) + engine.stats().pinned_bytes.current as usize;
    let segment = NewSegment::new(Region { base, bytes }).expect("a region");
    engine.adopt(segment).expect("room for one more");
}

/// A block that the engine has.
fn take(engine: &mut Engine, bytes: usize) -> Block {
    match engine.request(black_box(bytes)) {
        Decision::Block(block) => block,
        other => panic!("{bytes} bytes: {other:?}"),
    }
}
