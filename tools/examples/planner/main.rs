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
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use pinbuddy_plan::{Block, Effort, Instance, Options, check, check_plan, plan, solve};
use pinbuddy_tools::effort::{gap_percent, threads};
use serde_json::{Map, Value, json};

/// Blocks of the hard instances, seeds of each, and the seconds that each is given.
const HARD: [usize; 4] = [100, 200, 300, 400];
const SEEDS: u64 = 4;
const HARD_SECONDS: f64 = 15.0;

/// Requests of large ones, and their seconds.
const LARGE: [(usize, f64); 2] = [(100_000, 10.0), (1_000_000, 180.0)];

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
        _ => bail!("usage: planner [table BLOCKS SEED]"),
    };
    writeln!(to, "{}", serde_json::to_string_pretty(&value)?)?;
    Ok(())
}

fn all() -> Result<Value> {
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
    let effort = Effort {
        joins: true,
        threads: threads(None),
        stop: &|| begun.elapsed().as_secs_f64() > seconds,
        seen: &|_| (),
    };
    let solution = solve(&instance, effort);
    let took = begun.elapsed().as_secs_f64();
    let peak = check(blocks, None, &solution.offsets)
        .context("the placement found is none, which is a defect of pinbuddy")?;
    Ok(json!({
        "blocks": blocks.len(),
        "gap_percent": rounded(gap_percent(peak, bound)),
        "seconds": rounded(took),
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
