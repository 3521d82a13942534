//! The programs of the part `worst` that need nanoseconds or threads, in the harness (`tests/bench`). Pins are
//! counted, not made.

use anyhow::Result;

use crate::bench::effort::Effort;
use crate::bench::figure::{Results, Target};
use crate::bench::fixture::Fixture;
use crate::bench::harness::{Harness, in_turns};
use crate::bench::matrix::Matrix;
use crate::bench::stats::{median, ratio_of_turns};
use crate::bench::subject::{Memory, Settings, Subject};
use xtask_support::progress::Step;

use super::MOST_ROUNDS;

/// A pattern of requests (`tests/bench/requests.h`), and the allowed ratio of the fork's time to stock's.
struct Pattern {
    name: &'static str,
    requests: &'static str,
    /// This many pairs take about a millisecond; a multiple of the batch.
    pairs: u32,
    /// The engine may pin next to nothing.
    spent: bool,
    target: f64,
}

const fn pattern(name: &'static str, requests: &'static str, pairs: u32, target: f64) -> Pattern {
    Pattern {
        name,
        requests,
        pairs,
        spent: false,
        target,
    }
}

const PATTERNS: [Pattern; 7] = [
    pattern("64KiB-x1000", "1000x65536", 8_000, 1.3),
    pattern("8MiB-x400", "400x8388608", 8_000, 1.3),
    pattern("50-sizes", "50-sizes", 8_000, 1.3),
    pattern("50-random", "50-random", 8_000, 1.3),
    // Stock reuses a block of the next power of two; the fork splits and merges.
    pattern("never-again", "never-again", 4_000, 2.0),
    Pattern {
        spent: true,
        ..pattern("budget-spent", "400-sizes", 8_000, 1.3)
    },
    Pattern {
        spent: true,
        ..pattern("budget-spent-random", "50-random", 8_000, 1.3)
    },
];

/// Many live blocks, many sizes, sizes that do not come back, and a budget that is used up.
pub fn pairs(fixture: &Fixture, name: &str, step: &Step, results: &mut Results) -> Result<()> {
    let mut table = Matrix::new("pairs, ns", ["stock", "pinbuddy", "ratio"]);
    for pattern in &PATTERNS {
        let (mut ratios, mut times) = (Vec::new(), [Vec::new(), Vec::new()]);
        for round in 1..=fixture.effort.rounds().min(MOST_ROUNDS) {
            step.say(format!("round {round}, {name}, {}", pattern.name));
            let [stock, fork] = pairs_once(fixture, pattern)?;
            ratios.push(ratio_of_turns(&fork, &stock));
            times[0].push(median(&stock));
            times[1].push(median(&fork));
        }
        let path = path(name, pattern.name);
        results.rounds(&path, &ratios, Some(Target::AtMost(pattern.target)));
        let cells = [&times[0], &times[1], &ratios].map(|it| Some(median(it)));
        table.row(pattern.name, cells, 2);
    }
    results.tables.push(table.to_string());
    Ok(())
}

/// Nanoseconds per pair in each turn, for stock and the fork.
fn pairs_once(fixture: &Fixture, pattern: &Pattern) -> Result<[Vec<f64>; 2]> {
    let mut settings: Settings = vec![("BUDDY_WARMUP", "sync".to_owned())];
    if pattern.spent {
        for name in ["BUDDY_MAX_MB", "BUDDY_BLOCK_SIZE_MB"] {
            settings.push((name, "64".to_owned()));
        }
    }
    let start = |subject| fixture.start(subject, Memory::Counted, settings.clone());
    let mut both = [start(Subject::Stock)?, start(Subject::Pinbuddy)?];
    both.iter().try_for_each(Harness::pin_to_one_core)?;
    for harness in &mut both {
        harness.ask(&format!("requests {}", pattern.requests))?;
        harness.ask(&format!("pairs {}", 4 * pattern.pairs))?;
    }
    let line = format!("pairs {}", pattern.pairs);
    let turns = fixture.effort.turns();
    let mut times = in_turns(&mut both, turns, |it| it.ask(&line)?.number("ns"))?;
    let fork = times.pop().unwrap_or_default();
    Ok([times.pop().unwrap_or_default(), fork])
}

/// Four threads fill the pinned memory, and one reads statistics all the time, which flushes the thread caches. The
/// figure is the worst ratio of pinned memory after to before, since an unnecessary pin stays.
pub fn statistics(fixture: &Fixture, name: &str, step: &Step, results: &mut Results) -> Result<()> {
    let seconds = match fixture.effort {
        Effort::Full => 3,
        Effort::Quick | Effort::Smoke => 1,
    };
    let mut worst = 0.0_f64;
    for round in 1..=fixture.effort.rounds().min(MOST_ROUNDS) {
        step.say(format!("round {round}, {name}"));
        let settings = vec![
            ("BUDDY_WARMUP", "sync".to_owned()),
            ("BUDDY_BLOCK_COUNT", "1".to_owned()),
        ];
        let mut harness = fixture.start(Subject::Pinbuddy, Memory::Counted, settings)?;
        harness.ask("requests 268435456")?;
        harness.ask("threads 4 1000")?;
        // Those threads end, and free their blocks.
        harness.ask("requests 268435456")?;
        let before = harness.ask("pins")?.number("bytes")?;
        harness.ask(&format!("beside-statistics 4 {seconds}"))?;
        worst = worst.max(harness.ask("pins")?.number("bytes")? / before);
    }
    let path = path(name, "pinned_after_over_before");
    results.value(&path, worst, Some(Target::AtMost(1.0)));
    Ok(())
}

/// Number of holes in the pool, and RMM's published microseconds per pair with as many.
const HOLES: [(u32, f64); 2] = [(4_096, 10.0), (65_536, 156.0)];
/// Seconds that making them may take.
const PATIENCE: u32 = 60;

/// Requests of many sizes among holes that fit only the smallest of them.
pub fn holes(fixture: &Fixture, name: &str, step: &Step, results: &mut Results) -> Result<()> {
    for (count, published) in HOLES {
        let mut rounds = Vec::new();
        for round in 1..=fixture.effort.rounds().min(MOST_ROUNDS) {
            step.say(format!("round {round}, {name}, {count}"));
            let settings = vec![
                ("BUDDY_WARMUP", "sync".to_owned()),
                ("BUDDY_THRESHOLD_MB", "0".to_owned()),
            ];
            let mut harness = fixture.start(Subject::Pinbuddy, Memory::Counted, settings)?;
            harness.pin_to_one_core()?;
            harness.ask("requests small-miss")?;
            let made = harness.ask(&format!("crowd {count} {PATIENCE}"))?;
            anyhow::ensure!(made.number("done")? == 1.0, "{count} holes took too long");
            harness.ask("pairs 1000")?;
            let turns: Result<Vec<f64>> = (0..fixture.effort.turns())
                .map(|_| harness.ask("pairs 1000")?.number("ns"))
                .collect();
            rounds.push(median(&turns?) / 1e3);
        }
        let path = path(
            name,
            if count == 4_096 {
                "4096_us"
            } else {
                "65536_us"
            },
        );
        results.rounds(&path, &rounds, Some(Target::AtMost(published)));
    }
    Ok(())
}

fn path<'a>(name: &'a str, figure: &'a str) -> Vec<&'a str> {
    name.split('/').chain([figure]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A turn that ends within a batch would leave blocks live in the next.
    #[test]
    fn turns_are_whole_batches() {
        for pattern in &PATTERNS {
            let batch = pattern.requests.split(['x', '-']).next();
            if let Some(batch) = batch.and_then(|it| it.parse::<u32>().ok()) {
                // A quarter of a turn runs first, unmeasured.
                assert_eq!(pattern.pairs % (4 * batch), 0, "{}", pattern.name);
            }
        }
        assert_eq!(
            path("worst/holes", "4096_us"),
            ["worst", "holes", "4096_us"]
        );
    }
}
