//! `cargo xtask bench`: the fork beside the official wheel and other allocators, in one run.
//!
//! Invariant: what is compared ran in this run, in turns, on the same requests; ratios are the result.

pub mod axis;
mod build;
pub mod choice;
mod context;
mod effort;
mod figure;
mod first;
mod harness;
mod hit;
mod matrix;
mod memory;
pub mod part;
mod peer;
pub mod place;
pub mod plot;
pub mod program;
mod rig;
mod scaling;
mod script;
mod stats;
mod threads;
mod trace;
pub mod worst;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cli;
use crate::report::progress::{Progress, Step};
use crate::report::tally::Tally;
use crate::support::scratch::Scratch;
use crate::support::{lock, paths};
use effort::Effort;
use figure::Results;
use part::Part;
use place::Place;
use program::Program;
use rig::Rig;

/// The command.
pub fn run(args: &cli::Bench) -> Result<()> {
    let named: Vec<Part> = args.only.iter().map(|it| it.part).collect();
    let parts = Part::chosen(&named, args.quick);
    // Two at a time would measure each other.
    let _lock = lock::take("bench")?;
    let place = Place::prepare(args)?;
    let progress = Progress::new(parts.len() + 1);
    let effort = if args.quick {
        Effort::Quick
    } else {
        Effort::Full
    };
    let program = progress.step("the harness", |step| Program::ensure(&place, step))?;
    let rig = Rig {
        place,
        program,
        effort,
    };
    let context = context::describe(&rig)?;
    println!("{}\n", context::headline(&context));
    let mut results = Results::default();
    results.skip("rmm", RMM);
    let mut failed = Vec::new();
    for part in parts {
        let name = part.name();
        let shown = results.tables.len();
        if let Err(error) =
            progress.step(&name, |step| measure(args, &rig, part, step, &mut results))
        {
            // What the others found is worth as much as before.
            crate::report(&error);
            results.skip(&name, "it failed");
            failed.push(name);
        }
        for table in &results.tables[shown..] {
            println!("{table}");
        }
    }
    print!("{results}");
    for chart in &results.charts {
        plot::write(chart, &args.out)?;
    }
    if !results.charts.is_empty() {
        eprintln!(
            "{} plots in {}",
            results.charts.len(),
            paths::show(&args.out)
        );
    }
    if let Some(file) = &args.json {
        let text = serde_json::to_string_pretty(&results.json(context))? + "\n";
        fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    anyhow::ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    if args.strict {
        results.require_targets()?;
    }
    Ok(())
}

/// A few turns of the parts that need the harness alone: for `cargo xtask test`.
pub fn smoke(fork: &Path, stock: &Path) -> Result<Tally> {
    let place = Place::simulated_with(stock, fork)?;
    let progress = Progress::new(3);
    let program = progress.step("the harness", |step| Program::ensure(&place, step))?;
    let rig = Rig {
        place,
        program,
        effort: Effort::Smoke,
    };
    let mut results = Results::default();
    progress.step("hit", |step| hit::run(&rig, step, &mut results))?;
    progress.step("threads", |step| threads::run(&rig, step, &mut results))?;
    let folder = Scratch::folder(&paths::target().join("bench/smoke"))?;
    for chart in &results.charts {
        plot::write(chart, folder.path())?;
    }
    let json = results.json(context::describe(&rig)?);
    let keys = [
        "hit_pair_ratio",
        "p99_ratio",
        "miss_ratio",
        "threads_ratio",
        "context",
    ];
    for key in keys {
        anyhow::ensure!(!json[key].is_null(), "the results have no {key}");
    }
    anyhow::ensure!(
        results.all_are_positive(),
        "a figure is no number:\n{results}"
    );
    Ok(Tally::one())
}

/// The harness, compiled where it is not current.
pub fn harness(fork: &Path, stock: &Path) -> Result<PathBuf> {
    let place = Place::simulated_with(stock, fork)?;
    let progress = Progress::new(1);
    let program = progress.step("the harness", |step| Program::ensure(&place, step))?;
    Ok(program.path().to_path_buf())
}

/// Its wheel has a CUDA runtime of its own linked in, which no simulator can stand in front of, and
/// has no driver to ask without a GPU.
const RMM: &str =
    "its wheel has its own CUDA runtime linked in, which asks a real driver; not compared yet";

fn measure(
    args: &cli::Bench,
    rig: &Rig,
    part: Part,
    step: &Step,
    results: &mut Results,
) -> Result<()> {
    let place = &rig.place;
    if !place.simulated()
        && matches!(
            part,
            Part::Memory | Part::Scaling | Part::Production | Part::Worst
        )
    {
        let why = "it counts pins of more memory than there is, which only the simulator does";
        results.skip(&part.name(), why);
        return Ok(());
    }
    match part {
        Part::Hit => hit::run(rig, step, results),
        Part::Threads => threads::run(rig, step, results),
        Part::Scaling => scaling::run(rig, step, results),
        Part::Memory => memory::run(rig, &args.trace, step, results),
        Part::First => first::run(rig, step, results),
        Part::WarmUp => script::warm_up(place, results),
        Part::Overhead => script::overhead(place, results),
        Part::Production => script::production(place, results),
        Part::Worst => worst::run(rig, &choice::programs(&args.only), step, results),
        Part::Build => build::run(args, step, results),
    }
}
