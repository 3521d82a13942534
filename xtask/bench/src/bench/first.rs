//! Time in requests during the first iteration of a training run, with pages locked for real.
//!
//! The trace is replayed at its own pace, so that a background warm-up has the same time as beside a real program.
//! Only time within the allocator counts.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use pinbuddy_events::Op;
use pinbuddy_replay::workload::Workload;
use serde_json::json;

use super::context;
use super::effort::Effort;
use super::figure::{Results, Target};
use super::fixture::Fixture;
use super::matrix::Matrix;
use super::stats::median;
use super::subject::{Memory, Subject};
use super::trace::Compact;
use xtask_support::paths;
use xtask_support::progress::Step;
use xtask_support::scratch::Scratch;

const WORKLOAD: &str = "training-1f1b";

/// Each start fills gigabytes of fresh memory, which takes a quarter of a minute.
const MOST_ROUNDS: usize = 5;

/// A way to start.
#[derive(Clone, Copy)]
struct Start {
    name: &'static str,
    subject: Subject,
    warmup: Option<&'static str>,
    /// Whether to warm up before the first request.
    ready: bool,
    /// The target: at least this many times faster than stock.
    target: Option<f64>,
}

const fn other(subject: Subject, name: &'static str) -> Start {
    Start {
        name,
        subject,
        warmup: None,
        ready: false,
        target: None,
    }
}

const fn ours(name: &'static str, warmup: &'static str, ready: bool, target: f64) -> Start {
    Start {
        name,
        subject: Subject::Pinbuddy,
        warmup: Some(warmup),
        ready,
        target: Some(target),
    }
}

/// Stock comes first; a quick run leaves out the last ones.
const STARTS: [Start; 7] = [
    other(Subject::Stock, "stock"),
    ours("ready", "background", true, 10.0),
    ours("background", "background", false, 3.0),
    ours("sync", "sync", false, 1.0),
    other(Subject::StockTuned, "stock-tuned"),
    other(Subject::Reserve, "reserve"),
    other(Subject::Buddy181094, "buddy-181094"),
];

pub fn run(fixture: &Fixture, step: &Step, results: &mut Results) -> Result<()> {
    let workload = Workload::named(WORKLOAD).context("there is no such workload")?;
    let mut over = false;
    let first = workload.events(1, 1).take_while(|event| {
        let before = !over;
        over = matches!(event.op, Op::Iteration);
        before
    });
    let compact = Compact::of(first)?;
    // Stock rounds to powers of two and needs 1.4 times as much here; others pin 8 GiB ahead.
    let needed = (compact.peak_live() / 2 * 3).max(9 << 30);
    let available = context::available_memory()?;
    if available < needed {
        let why = format!(
            "{} MiB are available, {} MiB would be locked and used",
            available >> 20,
            needed >> 20
        );
        results.skip("first", &why);
        return Ok(());
    }
    let file = Scratch::file(&paths::target().join("bench/first-trace"))?;
    compact.write(file.path())?;
    let starts = match fixture.effort {
        Effort::Full => &STARTS[..],
        Effort::Quick | Effort::Smoke => &STARTS[..4],
    };
    let mut seconds = BTreeMap::<&str, Vec<f64>>::new();
    for round in 0..fixture.effort.rounds().min(MOST_ROUNDS) {
        for turn in 0..starts.len() {
            let start = starts[(round + turn) % starts.len()];
            step.say(format!("round {}, {}", round + 1, start.name));
            let took = first_iteration(fixture, start, needed, file.path())?;
            seconds.entry(start.name).or_default().push(took);
        }
    }
    let stock = &seconds["stock"];
    let mut table = Matrix::new("first iteration", ["seconds", "speedup"]);
    for start in starts {
        let own = &seconds[start.name];
        let speedups: Vec<f64> = stock.iter().zip(own).map(|(of, own)| of / own).collect();
        table.row(start.name, [Some(median(own)), Some(median(&speedups))], 3);
        if let Some(target) = start.target {
            let path = ["first_iteration_speedup", start.name];
            results.rounds(&path, &speedups, Some(Target::AtLeast(target)));
        }
    }
    results.tables.push(table.to_string());
    let medians: BTreeMap<&str, f64> = seconds
        .iter()
        .map(|(name, rounds)| (*name, median(rounds)))
        .collect();
    let details = json!({
        "workload": WORKLOAD, "seconds": medians, "peak_live_bytes": compact.peak_live(),
    });
    results.detail("first", details);
    Ok(())
}

/// Seconds within the allocator.
fn first_iteration(
    fixture: &Fixture,
    start: Start,
    needed: u64,
    trace: &std::path::Path,
) -> Result<f64> {
    let warmup = start.warmup.map(|it| ("BUDDY_WARMUP", it.to_owned()));
    let settings = warmup.into_iter().collect();
    let mut harness = fixture.start(start.subject, Memory::Locked, settings)?;
    // A virtual machine has to ask its host for memory that was not in use lately, which takes longer than
    // everything else.
    harness.ask(&format!("use {needed}"))?;
    if start.ready {
        harness.ask("warm-up")?;
    }
    let answer = harness.ask(&format!("replay {} paced", trace.display()))?;
    let first = answer.list("iteration_ns")?.first();
    Ok(first.context("the trace has no iteration")? / 1e9)
}
