//! What the planner reaches on instances that it has never seen, and what it takes: the figures of docs/plans.md, as JSON.
//!
//! ```console
//! $ cargo run --release -p pinbuddy-tools --example planner > docs/results/DATE-planner.json
//! $ cargo run --release -p pinbuddy-tools --example planner -- table 200 1 > blocks.csv    # for plan --instance
//! ```
//!
//! Each measurement is a process of its own, whose memory is that of the measurement. Instances are made from seeds
//! ([`instances`]); nothing is tuned to them.

mod instances;

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use pinbuddy_plan::{Block, Effort, Instance, Options, check, check_plan, plan, solve};
use pinbuddy_tools::effort::{gap_percent, threads};
use pinbuddy_tools::input::Input;
use serde_json::{Map, Value, json};

/// Blocks of the hard instances, seeds of each, and the seconds that each is given.
const HARD: [usize; 4] = [100, 200, 300, 400];
const SEEDS: u64 = 4;
const HARD_SECONDS: f64 = 15.0;

/// Requests of large ones, and their seconds.
const LARGE: [(usize, f64); 2] = [(100_000, 10.0), (1_000_000, 180.0)];

/// Steps of `kv-cache` in the trace that is read, and requests in the snapshot: a gigabyte.
const TRACE_STEPS: u32 = 40_000;
const SNAPSHOT_REQUESTS: u64 = 4_000_000;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut to = std::io::stdout();
    let value = match words[..] {
        [] => all()?,
        ["table", blocks, seed] => {
            let blocks = instances::hard(blocks.parse()?, seed.parse()?);
            writeln!(to, "id,lower,upper,size")?;
            for (id, it) in blocks.iter().enumerate() {
                writeln!(to, "{id},{},{},{}", it.lower, it.upper, it.size)?;
            }
            return Ok(());
        }
        ["hard", blocks, seed] => {
            let blocks = instances::hard(blocks.parse()?, seed.parse()?);
            solved(&blocks, HARD_SECONDS)?
        }
        ["blocks", requests, seconds] => {
            let blocks = instances::training(requests.parse()?, 1);
            solved(&blocks, seconds.parse()?)?
        }
        ["record", requests, seconds] => recorded(requests.parse()?, seconds.parse()?),
        ["read", file] => read(Path::new(file))?,
        _ => bail!("usage: planner [table BLOCKS SEED]"),
    };
    writeln!(to, "{}", serde_json::to_string_pretty(&value)?)?;
    Ok(())
}

fn all() -> Result<Value> {
    let folder = tempfile::tempdir()?;
    let mut results = Map::new();
    let mut hard = Map::new();
    let mut gaps = Vec::new();
    for blocks in HARD {
        for seed in 1..=SEEDS {
            let one = alone(&["hard", &blocks.to_string(), &seed.to_string()])?;
            gaps.push(one["gap_percent"].as_f64().context("a gap")?);
            hard.insert(format!("{blocks}/{seed}"), one);
        }
    }
    results.insert("hard_gap_percent".to_owned(), mean(&gaps).into());
    results.insert("hard".to_owned(), hard.into());
    for kind in ["blocks", "record"] {
        for (requests, seconds) in LARGE {
            let one = alone(&[kind, &requests.to_string(), &seconds.to_string()])?;
            results.insert(format!("{kind}_{requests}"), one);
        }
    }
    let trace = instances::trace(folder.path(), TRACE_STEPS)?;
    results.insert("trace".to_owned(), alone(&["read", &trace])?);
    let snapshot = instances::snapshot(folder.path(), SNAPSHOT_REQUESTS)?;
    results.insert("snapshot".to_owned(), alone(&["read", &snapshot])?);
    let context = json!({
        "threads": threads(None),
        "load_average": std::fs::read_to_string("/proc/loadavg")?.trim(),
        "hard_seconds": HARD_SECONDS,
    });
    results.insert("context".to_owned(), context);
    Ok(results.into())
}

/// A measurement in a process of its own, with the memory that it took.
fn alone(words: &[&str]) -> Result<Value> {
    let output = Command::new(std::env::current_exe()?)
        .args(words)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{words:?}: {said}");
    let value: Value = serde_json::from_slice(&output.stdout)?;
    eprintln!("{}: {value}", words.join(" "));
    Ok(value)
}

/// Places blocks within so many seconds.
fn solved(blocks: &[Block], seconds: f64) -> Result<Value> {
    let instance = Instance::new(blocks.to_vec())?;
    let bound = instance.lower_bound();
    let begun = Instant::now();
    let steps: Mutex<Vec<(u64, f64)>> = Mutex::default();
    let seen = |peak| {
        let mut steps = steps
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        steps.push((peak, begun.elapsed().as_secs_f64()));
    };
    let effort = Effort {
        joins: true,
        threads: threads(None),
        stop: &|| begun.elapsed().as_secs_f64() > seconds,
        seen: &seen,
    };
    let solution = solve(&instance, effort);
    let took = begun.elapsed().as_secs_f64();
    let peak = check(blocks, None, &solution.offsets)
        .context("the placement found is none, which is a defect of pinbuddy")?;
    let steps = steps
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let near = steps.iter().find(|it| gap_percent(it.0, bound) <= 2.0);
    Ok(json!({
        "blocks": blocks.len(),
        "gap_percent": rounded(gap_percent(peak, bound)),
        "seconds": rounded(took),
        "seconds_to_2_percent": near.map(|it| rounded(it.1)),
        "by": solution.by,
        "memory_mib": memory_mib(),
    }))
}

/// Makes a plan of a run with so many requests within so many seconds.
fn recorded(requests: usize, seconds: f64) -> Value {
    let record = instances::run(requests, 1);
    let begun = Instant::now();
    let options = Options {
        threads: threads(None),
        ..Options::default()
    };
    let made = plan(&record, &options, &|| {
        begun.elapsed().as_secs_f64() > seconds
    });
    let took = begun.elapsed().as_secs_f64();
    let memory = memory_mib();
    let hits = check_plan(&record, &made).hits as f64 / record.len() as f64;
    json!({
        "requests": record.len(),
        "gap_percent": rounded(gap_percent(made.reserved(), record.peak())),
        "hits_percent": rounded(hits * 100.0),
        "seconds": rounded(took),
        "memory_mib": memory,
    })
}

/// Reads a file once.
fn read(path: &Path) -> Result<Value> {
    let bytes = std::fs::metadata(path)?.len();
    let begun = Instant::now();
    let input = Input::open(path, None)?;
    let mut events = 0_u64;
    input.each(&mut |_| {
        events += 1;
        Ok(())
    })?;
    let took = begun.elapsed().as_secs_f64();
    let memory = memory_mib();
    Ok(json!({
        "mb": rounded(bytes as f64 / 1e6),
        "events": events,
        "mb_per_second": rounded(bytes as f64 / 1e6 / took),
        "memory_mib": memory,
        "memory_over_size": rounded((memory << 20) as f64 / bytes as f64),
    }))
}

/// The most memory that this process has had.
fn memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let kib = line.and_then(|it| it.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn mean(values: &[f64]) -> f64 {
    rounded(values.iter().sum::<f64>() / values.len() as f64)
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
