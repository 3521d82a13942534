//! How much each allocator pins: traces replayed on the real allocators.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use pinbuddy_replay::workload::{Sizes, WORKLOADS};
use serde_json::{Value, json};

use super::axis::{Axis, Scale};
use super::figure::{Results, Target};
use super::fixture::Fixture;
use super::harness::Answer;
use super::matrix::Matrix;
use super::planned::{self, Planned};
use super::plot::{Chart, Line, Series};
use super::replayed::{Program, SEED};
use super::stats::median;
use super::subject::{Memory, Settings, Subject};
use xtask_support::paths;
use xtask_support::progress::Step;
use xtask_support::scratch::Scratch;

const GIB: f64 = (1_u64 << 30) as f64;
/// One workload with fixed sizes and one with varying sizes.
const PLOTTED: [(&str, &str, &str); 2] = [
    (
        "training-1f1b",
        "memory-training",
        "Pinned memory, activation offload in a 1F1B pipeline",
    ),
    (
        "variable-lengths",
        "memory-variable-lengths",
        "Pinned memory, sizes that vary from step to step",
    ),
];

type Seen = BTreeMap<(String, Subject), Outcome>;

/// The outcome of a replay.
struct Outcome {
    pinned_over_requested: f64,
    after_clear_over_live: Option<f64>,
    /// Calls to the driver after the first step; with a plan, after the warm-up.
    later_pins: f64,
    /// Of a plan with slots: how many requests got theirs, in percent.
    planned_hits: Option<f64>,
    /// Of second runs: by seed, pinned over requested and calls after the warm-up. Above, the median and the most.
    second: Vec<(u64, f64, f64)>,
    answer: Answer,
}

pub fn run(
    fixture: &Fixture,
    traces: &[PathBuf],
    step: &Step,
    results: &mut Results,
) -> Result<()> {
    let mut programs: Vec<Program> = WORKLOADS.iter().map(Program::made_up).collect();
    programs.extend(traces.iter().map(|path| Program::recorded(path)));
    let mut seen = Seen::new();
    let file = Scratch::file(&paths::target().join("bench/trace"))?;
    for program in &programs {
        program.trace(SEED)?.write(file.path())?;
        for subject in Subject::ALL {
            step.say(format!("{}, {}", program.name, subject.name()));
            let replay = format!("replay {} free", file.path().display());
            let outcome = if subject == Subject::PinbuddyPlan {
                second_runs(fixture, program, &replay)?
            } else {
                let mut harness = fixture.start(subject, Memory::Counted, settings(subject))?;
                outcome(harness.ask(&replay)?)?
            };
            seen.insert((program.name.clone(), subject), outcome);
        }
    }
    record(&programs, &seen, results);
    for (key, title, read) in [
        (
            "pinned_over_requested",
            "pinned / requested",
            (|it| Some(it.pinned_over_requested)) as fn(&Outcome) -> Option<f64>,
        ),
        ("after_clear_over_live", "after clear / live", |it| {
            it.after_clear_over_live
        }),
        ("pins_after_warmup", "pins after the first step", |it| {
            Some(it.later_pins)
        }),
    ] {
        let digits = if key == "pins_after_warmup" { 0 } else { 3 };
        let mut table = Matrix::new(title, Subject::ALL.map(Subject::name));
        for program in &programs {
            let cells = Subject::ALL.map(|subject| read(&seen[&(program.name.clone(), subject)]));
            table.row(&program.name, cells, digits);
        }
        results.tables.push(table.to_string());
    }
    for (workload, file, title) in PLOTTED {
        results.charts.push(chart(&seen, workload, file, title)?);
    }
    let second = |program: &Program| {
        let runs = &seen[&(program.name.clone(), Subject::PinbuddyPlan)].second;
        let runs = runs.iter().map(|(seed, pinned, pins)| {
            json!({"seed": seed, "pinned_over_requested": pinned, "pins": pins})
        });
        (program.name.clone(), runs.collect())
    };
    let second: BTreeMap<String, Vec<Value>> = programs.iter().map(second).collect();
    results.detail("memory", json!({"seed": SEED, "second_runs": second}));
    Ok(())
}

/// The background thread polls events every 100 microseconds, which is too slow for a fast replay. So here
/// stock-tuned checks events as stock does.
fn settings(subject: Subject) -> Settings {
    let no_threads = || {
        (
            "PYTORCH_ALLOC_CONF",
            "pinned_max_round_threshold_mb:1".to_owned(),
        )
    };
    (subject == Subject::StockTuned)
        .then(no_threads)
        .into_iter()
        .collect()
}

fn outcome(answer: Answer) -> Result<Outcome> {
    let ratio = |over: f64, under: f64| (under > 0.0).then_some(over / under);
    let number = |name: &str| answer.number(name);
    let pinned = ratio(number("peak_pinned")?, number("peak_live")?);
    Ok(Outcome {
        pinned_over_requested: pinned.unwrap_or(1.0),
        after_clear_over_live: ratio(number("pinned_after_clear")?, number("live_at_clear")?),
        later_pins: answer.list("iteration_pins")?.iter().skip(1).sum(),
        planned_hits: None,
        second: Vec::new(),
        answer,
    })
}

/// Runs with the plan of an earlier one. Nobody marks iterations, as in most programs.
fn second_runs(fixture: &Fixture, program: &Program, first: &str) -> Result<Outcome> {
    let planned = Planned::of_a_run(fixture, |harness| harness.ask(first).map(drop))?;
    let file = Scratch::file(&paths::target().join("bench/second-trace"))?;
    let replay = format!("replay {} free", file.path().display());
    let (mut runs, mut last) = (Vec::new(), None);
    for &seed in program.second_seeds() {
        program.trace(seed)?.write(file.path())?;
        let mut harness = planned.start(fixture, Memory::Counted, Settings::new())?;
        harness.ask("warm-up")?;
        let outcome = outcome(harness.ask(&replay)?)?;
        let pins: f64 = outcome.answer.list("iteration_pins")?.iter().sum();
        runs.push((seed, outcome.pinned_over_requested, pins));
        last = Some((outcome, planned::hits_in_percent(&mut harness)?));
    }
    let (outcome, planned_hits) = last.context("no second run")?;
    let pinned: Vec<f64> = runs.iter().map(|it| it.1).collect();
    Ok(Outcome {
        pinned_over_requested: median(&pinned),
        later_pins: runs.iter().map(|it| it.2).fold(0.0, f64::max),
        planned_hits,
        second: runs,
        ..outcome
    })
}

fn record(programs: &[Program], seen: &Seen, results: &mut Results) {
    for program in programs {
        let name = program.name.as_str();
        for subject in Subject::ALL {
            let it = &seen[&(program.name.clone(), subject)];
            // The defaults pin ahead on purpose.
            let fit = match subject {
                Subject::PinbuddyExact => Some(bound(program, seen)),
                Subject::PinbuddyPlan => Some(planned::bound(program.sizes)),
                _ => None,
            };
            let path = ["pinned_over_requested", subject.name(), name];
            results.value(&path, it.pinned_over_requested, fit);
            if let Some(ratio) = it.after_clear_over_live {
                let path = ["after_clear_over_live", subject.name(), name];
                let target = subject.is_fork().then_some(Target::AtMost(1.02));
                results.value(&path, ratio, target);
            }
            let path = ["pins_after_warmup", subject.name(), name];
            let none = (subject == Subject::PinbuddyPlan).then_some(Target::AtMost(0.0));
            results.value(&path, it.later_pins, none);
            if let Some(percent) = it.planned_hits {
                results.value(&["planned_hits_percent", name], percent, None);
            }
        }
    }
}

/// At most 1.05 with fixed sizes and 1.10 with varying ones, and at most the best other allocator plus 0.01, since
/// regions are whole huge pages.
fn bound(program: &Program, seen: &Seen) -> Target {
    let own: f64 = match program.sizes {
        Sizes::Fixed => 1.05,
        Sizes::Vary => 1.10,
    };
    let others = Subject::ALL.iter().filter(|subject| !subject.is_fork());
    let least = others
        .map(|subject| seen[&(program.name.clone(), *subject)].pinned_over_requested)
        .fold(f64::INFINITY, f64::min);
    Target::AtMost(own.min(least + 0.01))
}

fn chart(seen: &Seen, workload: &str, file: &'static str, title: &'static str) -> Result<Chart> {
    let mut series = Vec::new();
    for (name, answer, field) in [(
        "live",
        &seen[&(workload.to_owned(), Subject::Stock)].answer,
        "sample_live",
    )]
    .into_iter()
    .chain(Subject::ALL.map(|subject| {
        let answer = &seen[&(workload.to_owned(), subject)].answer;
        (subject.name(), answer, "sample_pinned")
    })) {
        let times = answer.list("sample_us")?.iter().map(|it| it / 1e6);
        let values = answer.list(field)?.iter().map(|it| it / GIB);
        series.push(Series {
            name,
            points: times.zip(values).collect(),
        });
    }
    Ok(Chart {
        file,
        title: title.to_owned(),
        x: Axis::new("seconds of the program", Scale::Linear),
        y: Axis::new("GiB", Scale::Linear),
        line: Line::Steps,
        series,
    })
}
