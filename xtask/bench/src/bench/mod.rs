//! `cargo xtask bench`: compares the fork with the official wheel and other allocators, in one run.
//!
//! Invariant: everything that is compared ran in this run, in turns, on the same requests. Ratios are the result.

pub mod axis;
mod build;
pub mod choice;
mod context;
mod device;
mod effort;
pub mod environments;
mod figure;
mod first;
mod fixture;
mod harness;
mod hit;
mod matrix;
mod memory;
pub mod part;
mod plan;
mod planned;
pub mod plot;
mod record;
mod replayed;
mod scaling;
mod script;
mod stats;
mod subject;
mod threads;
mod trace;
mod trainings;
pub mod worst;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cli::{self, Handed};
use effort::Effort;
use environments::Environments;
use figure::Results;
use fixture::Fixture;
use part::Part;
use serde::Serialize;
use xtask_python::environment::Environment;
use xtask_python::runtime::Runtime;
use xtask_python::simulator::Simulator;
use xtask_support::progress::{Progress, Step};
use xtask_support::refusal::refuse;
use xtask_support::scratch::Scratch;
use xtask_support::{lock, paths};

pub fn run(args: &cli::Bench) -> Result<()> {
    let named: Vec<Part> = args.only.iter().map(|it| it.part).collect();
    let parts = Part::chosen(&named, args.quick);
    let steps = parts.len() + BUILT;
    if args.needs {
        println!("{}", serde_json::to_string(&Needs::of(args, steps))?);
        return Ok(());
    }
    // Two runs at a time would disturb each other.
    let _lock = lock::take("bench")?;
    let effort = if args.quick {
        Effort::Quick
    } else {
        Effort::Full
    };
    let fixture = fixture(&args.fork, &args.stock, &args.handed, effort)?;
    let progress = Progress::going_on(BUILT, steps);
    let context = context::describe(&fixture)?;
    println!("{}\n", context::headline(&context));
    let mut results = Results::default();
    results.skip("rmm", RMM);
    let mut failed = Vec::new();
    for part in parts {
        let name = part.name();
        let shown = results.tables.len();
        if let Err(error) = progress.step(&name, |step| {
            measure(args, &fixture, part, step, &mut results)
        }) {
            // The results of the other parts are still valid.
            xtask_support::failure::say(&error);
            results.skip(&name, "it failed");
            failed.push(name);
        }
        for table in &results.tables[shown..] {
            println!("{table}");
        }
    }
    print!("{results}");
    for chart in &results.charts {
        plot::write(chart, &args.out, &plot::notes(!args.real))?;
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

/// The number of steps that `cargo xtask bench` has done before.
const BUILT: usize = 1;

/// What a command line needs built; `cargo xtask bench` asks for this first.
#[derive(Debug, Serialize)]
struct Needs<'a> {
    fork: &'a Option<PathBuf>,
    stock: &'a Option<PathBuf>,
    python: &'a Path,
    real: bool,
    steps: usize,
}

impl<'a> Needs<'a> {
    fn of(args: &'a cli::Bench, steps: usize) -> Self {
        Self {
            fork: &args.fork,
            stock: &args.stock,
            python: &args.python,
            real: args.real,
            steps,
        }
    }
}

/// Checks what was handed over.
fn fixture(
    fork: &Option<PathBuf>,
    stock: &Option<PathBuf>,
    handed: &Handed,
    effort: Effort,
) -> Result<Fixture> {
    let (Some(fork), Some(stock), Some(harness)) = (fork, stock, &handed.harness) else {
        return Err(refuse("the benchmark builds nothing itself")
            .expected("--fork DIR, --stock DIR and --harness FILE")
            .remedy("cargo xtask bench makes them")
            .into());
    };
    let runtime = match &handed.simulator {
        Some(folder) => Runtime::Simulated(Simulator::at(folder.clone())),
        None => Runtime::Real,
    };
    Ok(Fixture {
        environments: Environments {
            fork: Environment::open(fork, "cargo xtask venv")?,
            stock: Environment::open(stock, "cargo xtask venv --stock")?,
            runtime,
        },
        program: harness.clone(),
        effort,
    })
}

/// A few turns of the parts that need the harness alone: for `cargo xtask test`.
pub fn smoke(args: &cli::Smoke) -> Result<()> {
    let (fork, stock) = (Some(args.fork.clone()), Some(args.stock.clone()));
    let fixture = fixture(&fork, &stock, &args.handed, Effort::Smoke)?;
    let progress = Progress::new(3);
    let mut results = Results::default();
    progress.step("hit", |step| hit::run(&fixture, step, &mut results))?;
    progress.step("threads", |step| threads::run(&fixture, step, &mut results))?;
    progress.step("plan", |step| plan::run(&fixture, &[], step, &mut results))?;
    let folder = Scratch::folder(&paths::target().join("bench/smoke"))?;
    for chart in &results.charts {
        plot::write(chart, folder.path(), &plot::notes(true))?;
    }
    let json = results.json(context::describe(&fixture)?);
    let keys = [
        "hit_pair_ratio",
        "p99_ratio",
        "miss_ratio",
        "threads_ratio",
        "plan",
        "context",
    ];
    for key in keys {
        anyhow::ensure!(!json[key].is_null(), "the results have no {key}");
    }
    anyhow::ensure!(
        results.all_are_positive(),
        "a figure is not a number:\n{results}"
    );
    Ok(())
}

/// Its wheel links a CUDA runtime statically, which the simulator cannot replace and which needs a driver.
const RMM: &str =
    "its wheel has its own CUDA runtime linked in, which asks a real driver; not compared yet";

fn measure(
    args: &cli::Bench,
    fixture: &Fixture,
    part: Part,
    step: &Step,
    results: &mut Results,
) -> Result<()> {
    let environments = &fixture.environments;
    if !environments.simulated()
        && matches!(
            part,
            Part::Memory
                | Part::Plan
                | Part::Scaling
                | Part::Trainings
                | Part::Production
                | Part::Worst
        )
    {
        let why = "it counts pins of more memory than there is, which only the simulator does";
        results.skip(&part.name(), why);
        return Ok(());
    }
    match part {
        Part::Hit => hit::run(fixture, step, results),
        Part::Threads => threads::run(fixture, step, results),
        Part::Scaling => scaling::run(fixture, step, results),
        Part::Memory => memory::run(fixture, &args.trace, step, results),
        Part::First => first::run(fixture, step, results),
        Part::Plan => plan::run(
            fixture,
            &choice::programs(Part::Plan, &args.only),
            step,
            results,
        ),
        Part::Record => record::run(fixture, step, results),
        Part::Device => device::run(fixture, step, results),
        Part::Trainings => trainings::run(environments, step, results),
        Part::WarmUp => script::warm_up(environments, results),
        Part::Overhead => script::overhead(environments, results),
        Part::Production => script::production(environments, results),
        Part::Worst => worst::run(
            fixture,
            &choice::programs(Part::Worst, &args.only),
            step,
            results,
        ),
        Part::Build => build::run(args, step, results),
    }
}
