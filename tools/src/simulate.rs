//! `simulate`: traces replayed on models of allocators, side by side.
//!
//! Reads a trace once, in batches that every policy replays in turn, so that any length fits in little memory.
//! Knows no format (`rust-core/events`) and no policy (`rust-core/replay`).

mod advice;
mod device;
mod input;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;

use anyhow::Result;
use pinbuddy_replay::policy::Kind;
use pinbuddy_replay::replay::{self, Outcome, Run, processor_seconds};
use pinbuddy_replay::step::Step;
use serde::Serialize;

use crate::advise::Advice;
use crate::{cli, output};
use input::Input;

/// Steps per batch: few enough to stay in a core's cache.
const BATCH: usize = 1 << 14;

/// The results for one trace.
#[derive(Debug, Serialize)]
struct Comparison {
    /// The workload's name, or the file.
    trace: String,
    /// The workload's seed and steps; absent for a file.
    #[serde(flatten)]
    made: Option<Made>,
    /// Lines of the trace.
    events: u64,
    /// Processor time for reading or generating, and checking, the events.
    reading_seconds: f64,
    /// By policy.
    policies: BTreeMap<&'static str, Outcome>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Made {
    seed: u64,
    steps: u32,
}

/// The results as JSON.
#[derive(Debug, Serialize)]
struct Answer {
    /// Whether this is an optimized build; otherwise speeds mean nothing.
    optimized: bool,
    /// Peak memory of this process, in bytes.
    peak_memory_bytes: Option<u64>,
    traces: Vec<Comparison>,
    /// What to set for each workload; none for files, which `advise` is for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    advice: Vec<Advice>,
}

/// The command.
///
/// # Errors
///
/// What was named is no trace, or standard output cannot be written.
pub fn run(args: &cli::Simulate) -> Result<()> {
    if args.device {
        return device::run(args);
    }
    let kinds = kinds(&args.policies);
    let mut traces = Vec::new();
    for input in input::all(&args.traces, args.made)? {
        let comparison = compare(input, &kinds, args)?;
        if !args.json {
            let table = table::Table(&comparison, &kinds);
            if !output::print_with(|to| write!(to, "{table}\n\n"))? {
                return Ok(());
            }
        }
        traces.push(comparison);
    }
    let advice = advice::of_workloads(args, &traces)?;
    if !args.json {
        output::print(&advice::Text(&advice))?;
    }
    let answer = Answer {
        optimized: !cfg!(debug_assertions),
        peak_memory_bytes: peak_memory(),
        traces,
        advice,
    };
    output::print(&if args.json {
        serde_json::to_string_pretty(&answer)? + "\n"
    } else {
        table::footer(&answer)
    })
}

/// The chosen policies, deduplicated, in the order of comparison.
fn kinds(asked: &[Kind]) -> Vec<Kind> {
    let all = Kind::ALL.into_iter();
    all.filter(|it| asked.is_empty() || asked.contains(it))
        .collect()
}

fn compare(mut input: Input, kinds: &[Kind], args: &cli::Simulate) -> Result<Comparison> {
    let settings = args.settings.settings();
    let mut runs: Vec<Box<dyn Run>> = kinds
        .iter()
        .map(|kind| replay::on(*kind, settings))
        .collect();
    let mut steps: Vec<Step> = Vec::with_capacity(BATCH);
    let (mut events, mut reading) = (0, 0.0);
    loop {
        let start = processor_seconds();
        let read = input.read(&mut steps, BATCH)?;
        reading += processor_seconds() - start;
        if read == 0 {
            break;
        }
        events += read;
        for run in &mut runs {
            run.batch(&steps);
        }
        steps.clear();
    }
    let outcomes = runs.iter().map(|run| run.outcome());
    Ok(Comparison {
        trace: input.name().to_owned(),
        made: input.made(),
        events,
        reading_seconds: reading,
        policies: kinds.iter().map(|kind| kind.name()).zip(outcomes).collect(),
    })
}

fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests;
