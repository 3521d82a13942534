//! Recording: what a pair of allocate and free takes more while `BUDDY_TRACE` is set, than while it is not, in turns.
//!
//! A turn has so few pairs that no ring is full, and comes after a rest in which the writer's thread drains it. Invariant:
//! nothing was dropped, which would be cheaper than to record it.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::figure::{Results, Target};
use super::fixture::Fixture;
use super::harness::{Harness, in_turns};
use super::matrix::Matrix;
use super::stats::median;
use super::subject::Subject;
use xtask_support::paths;
use xtask_support::progress::Step;
use xtask_support::scratch::Scratch;

/// Patterns, and what they are in the harness's words.
const PATTERNS: [(&str, &str); 3] = [("64KiB", "65536"), ("8MiB", "8388608"), ("mixed", "mixed")];
const PAIRS: u32 = 2_000;
const REST: Duration = Duration::from_millis(12);

/// The most nanoseconds that a recorded pair takes more.
const MORE: f64 = 30.0;

pub fn run(fixture: &Fixture, step: &Step, results: &mut Results) -> Result<()> {
    let mut table = Matrix::new("allocate + free, recorded, ns", ["off", "recorded", "more"]);
    let mut off = serde_json::Map::new();
    for (name, requests) in PATTERNS {
        let (mut without, mut more) = (Vec::new(), Vec::new());
        for round in 1..=fixture.effort.rounds() {
            step.say(format!("{name}, round {round}"));
            let (one, both) = one(fixture, requests)?;
            without.push(one);
            more.push(both - one);
        }
        results.rounds(&["record_more_ns", name], &more, Some(Target::AtMost(MORE)));
        let (without, more) = (median(&without), median(&more));
        table.row(name, [Some(without), Some(without + more), Some(more)], 1);
        off.insert(name.to_owned(), json!((without * 10.0).round() / 10.0));
    }
    results.tables.push(table.to_string());
    results.detail("record", json!({ "off_ns": off }));
    Ok(())
}

/// Medians of a round: nanoseconds of a pair without a trace, and the same with one, which is as many more as the turns say.
fn one(fixture: &Fixture, requests: &str) -> Result<(f64, f64)> {
    let folder = Scratch::folder(&paths::target().join("bench/record"))?;
    let file = folder.path().join("trace.jsonl");
    let memory = fixture.environments.lightest();
    let start = |more: Vec<(&'static str, String)>| fixture.start(Subject::Pinbuddy, memory, more);
    let recorded = vec![("BUDDY_TRACE", file.display().to_string())];
    let mut both = [start(Vec::new())?, start(recorded)?];
    let pairs = |harness: &mut Harness| {
        sleep(REST);
        harness.ask(&format!("pairs {PAIRS}"))?.number("ns")
    };
    for harness in &mut both {
        harness.ask(&format!("requests {requests}"))?;
        for _ in 0..4 {
            pairs(harness)?;
        }
        // The writer's thread is there by now, and keeps all cores.
        harness.pin_to_one_core()?;
    }
    let times = in_turns(&mut both, fixture.effort.turns(), pairs)?;
    let [off, on] = &times[..] else {
        anyhow::bail!("two processes take turns");
    };
    let more: Vec<f64> = on.iter().zip(off).map(|(on, off)| on - off).collect();
    drop(both);
    let trace = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
    let lines = || trace.split(|&byte| byte == b'\n');
    let lost = lines().filter(|line| has(line, b"\"op\":\"lost\"")).count();
    ensure!(lines().count() > 1, "nothing was recorded");
    ensure!(
        lost == 0,
        "the trace was written more slowly than it came, {lost} times: a quieter machine records all of it"
    );
    Ok((median(off), median(off) + median(&more)))
}

fn has(line: &[u8], text: &[u8]) -> bool {
    line.windows(text.len()).any(|it| it == text)
}
