//! `simulate`: traces replayed on models of allocators, side by side.
//!
//! Each policy replays a trace in batches, as it is read; a snapshot is read as a whole.
//! Knows no format (`input`) and no policy (`rust-core/replay`).

mod device;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Result, bail};
use pinbuddy_events::{Op, Whose};
use pinbuddy_replay::policy::Kind;
use pinbuddy_replay::replay::{self, Outcome, processor_seconds};
use pinbuddy_replay::step::Step;
use pinbuddy_replay::workload::{WORKLOADS, Workload};
use serde::Serialize;

use crate::advise::{Advice, advise};
use crate::baseline::Replays;
use crate::input::Input;
use crate::plan::search;
use crate::{cli, output};

/// How long a plan is looked for: a hint, not a plan to be used.
const SECONDS: f64 = 0.5;

/// The results for one trace.
#[derive(Debug, Serialize)]
struct Comparison {
    /// The workload's name, or the file.
    trace: String,
    /// The workload's seed and steps; absent for a file.
    #[serde(flatten)]
    made: Option<Made>,
    /// Events of pinned memory.
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
    let inputs = inputs(&args.traces, args.made)?;
    let mut traces = Vec::new();
    for (input, made) in &inputs {
        let comparison = compare(input, *made, &kinds, args)?;
        if !args.json {
            let table = table::Table(&comparison, &kinds);
            if !output::print_with(|to| write!(to, "{table}\n\n"))? {
                return Ok(());
            }
        }
        traces.push(comparison);
    }
    let advice = advice(&inputs, args)?;
    if !args.json {
        output::print(&table::Advised(&advice))?;
    }
    let answer = Answer { optimized: !cfg!(debug_assertions), peak_memory_bytes: peak_memory(), traces, advice };
    output::print(&if args.json { output::pretty(&answer)? } else { table::footer(&answer) })
}

/// The chosen policies, deduplicated, in the order of comparison.
fn kinds(asked: &[Kind]) -> Vec<Kind> {
    let all = Kind::ALL.into_iter();
    all.filter(|it| asked.is_empty() || asked.contains(it)).collect()
}

/// The named traces, or every workload.
fn inputs(names: &[String], made: cli::Made) -> Result<Vec<(Input, Option<Made>)>> {
    let make = |workload: &'static Workload| {
        let (seed, steps) = (made.seed, made.steps.unwrap_or(workload.steps));
        let events = move || -> Box<dyn Iterator<Item = _>> { Box::new(workload.events(seed, steps)) };
        let input = Input::generated(workload.name, Box::new(events));
        (input, Some(Made { seed, steps }))
    };
    if names.is_empty() {
        return Ok(WORKLOADS.iter().map(make).collect());
    }
    let named = |name: &String| match Workload::named(name) {
        Some(workload) => Ok(make(workload)),
        None => Ok((open(name)?, None)),
    };
    names.iter().map(named).collect()
}

fn open(name: &str) -> Result<Input> {
    let path = Path::new(name);
    if name != "-"
        && let Err(why) = fs::metadata(path)
    {
        bail!("there is no trace {name} ({why}), and no workload of that name: pinbuddy trace --list has them");
    }
    let mut input = Input::open(path, None)?;
    if input.whose() != Whose::Host {
        bail!("{name} has requests for device memory alone: pinbuddy plan is for those");
    }
    // A policy has the streams' work in its own time.
    input.about.recorded = false;
    Ok(input)
}

fn compare(input: &Input, made: Option<Made>, kinds: &[Kind], args: &cli::Simulate) -> Result<Comparison> {
    let settings = args.settings.settings();
    let runs = kinds.iter().map(|kind| replay::on(*kind, settings));
    let mut replays = Replays::new(runs.collect());
    let (mut events, mut lost) = (0, 0_u64);
    let begun = processor_seconds();
    input.each(&mut |item| {
        events += 1;
        if let Op::Lost { events } = item.event.op {
            lost = lost.saturating_add(events);
        }
        Step::of(&item).into_iter().for_each(|it| replays.push(it));
        Ok(())
    })?;
    let outcomes = replays.outcomes();
    let replaying: f64 = outcomes.iter().map(|it| it.seconds).sum();
    let reading_seconds = processor_seconds() - begun - replaying;
    input.say_cut_off();
    if lost > 0 {
        let name = &input.name;
        output::say(format_args!("{name} lacks {lost} events, which came too fast\n"));
    }
    Ok(Comparison {
        trace: input.name.clone(),
        made,
        events,
        reading_seconds,
        policies: kinds.iter().map(|kind| kind.name()).zip(outcomes).collect(),
    })
}

/// What to set for a program like each workload; nothing where policies were chosen, or for files, which `advise` is for.
fn advice(inputs: &[(Input, Option<Made>)], args: &cli::Simulate) -> Result<Vec<Advice>> {
    let made = inputs.iter().filter(|it| it.1.is_some() && args.policies.is_empty());
    made.map(|(input, _)| advise(input, &mut |record| search(record, SECONDS, None))).collect()
}

fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests;
