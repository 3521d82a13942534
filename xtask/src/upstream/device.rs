//! PyTorch's own tests of device memory, with ours in front of its allocator.
//!
//! The official wheel's outcomes are the reference, down to the first line of what a failure says: a test that the
//! simulator fails still shows how far it came. `tests/upstream/device.toml` has the choice of tests, and every
//! known failure and difference with its reason. Runs in the simulator only.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::environment::Environment;
use super::outcome::{Baseline, Outcomes, Run, Served, Verdict};
use super::python::{self, Choice, Report};
use super::source::PYTHON_TEST;
use super::{baseline, debian, log_folder};
use crate::python::Python;
use crate::python::environment::clear_settings;
use crate::python::tools;
use crate::runtime::{self, Runtime};
use crate::support::paths;
use crate::support::progress::{Progress, Step};
use crate::support::refusal::refuse;
use crate::support::tally::Tally;
use crate::venv;
use known::Known;

mod known;

const LIMIT: Duration = Duration::from_secs(600);
const EXPANDABLE: Setting = ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True");

/// A variable and its value.
type Setting = (&'static str, &'static str);

/// The official wheel's runs: the title, the name of what is cached, and a setting.
const STOCK: [(&str, &str, Option<Setting>); 2] = [
    ("stock", "stock-device", None),
    (
        "stock, expandable",
        "stock-device-expandable",
        Some(EXPANDABLE),
    ),
];

/// A run with ours.
struct Ours {
    title: &'static str,
    /// Which of the official wheel's runs it is compared with.
    reference: usize,
    /// Whether it has a plan, or is recorded.
    planned: bool,
}

const OURS: [Ours; 3] = [
    Ours {
        title: "recorded",
        reference: 0,
        planned: false,
    },
    Ours {
        title: "planned",
        reference: 0,
        planned: true,
    },
    Ours {
        title: "planned, expandable",
        reference: 1,
        planned: true,
    },
];

/// Requests that a plan has to serve, since a plan that serves none shows nothing.
const SERVED: u64 = 8;

/// Runs everything, prints the table, and fails if ours differs from stock in what is not listed.
pub fn count(source: Option<&Path>) -> Result<Tally> {
    let interpreter = Path::new("python3");
    let python = Python::probe(interpreter)?;
    let runtime = runtime::choose(false)?;
    let progress = Progress::new(3 + STOCK.len() + OURS.len());
    let (known, choice, requirements) = progress.step("get PyTorch's tests", |step| {
        let root = source.map_or_else(|| debian::ensure(step), |it| Ok(it.to_path_buf()))?;
        let known = Known::read()?;
        let choice = known.choice(root.join(PYTHON_TEST), LIMIT);
        anyhow::ensure!(
            choice.file.is_file(),
            "there is no {}",
            choice.file.display()
        );
        let tools = tools::ensure(&python)?;
        Ok((
            known,
            choice,
            python::ensure_requirements(&python, &tools, step)?,
        ))
    })?;
    let [stock, fork] = progress.step("look at the environments", |_| {
        Ok([
            Environment::probe(
                "the official wheel",
                &venv::ensure(None, true, interpreter)?,
                &runtime,
            )?,
            Environment::probe(
                "the fork",
                &venv::ensure(None, false, interpreter)?,
                &runtime,
            )?,
        ])
    })?;
    let bench = Bench {
        choice,
        requirements,
        runtime,
    };
    let mut runs = Vec::new();
    for (title, name, setting) in STOCK {
        runs.push(progress.step(&format!("test: {title}"), |step| {
            let outcomes =
                bench.reference(&stock, name, setting, &known, source.is_none(), step)?;
            Ok(run(title, true, outcomes))
        })?);
    }
    let plan = progress.step("plan", |_| bench.plan(&fork))?;
    let mut complaints = Vec::new();
    if source.is_none() {
        complaints.extend(
            runs.iter()
                .flat_map(|it| known.unexplained(it.title, &it.outcomes)),
        );
    }
    for ours in &OURS {
        let report = progress.step(&format!("test: {}", ours.title), |_| {
            bench.ours(&fork, ours, &plan)
        })?;
        let reference = &runs[ours.reference].outcomes;
        complaints.extend(known.differences(ours.title, reference, &report.outcomes));
        let served = report.planned.unwrap_or(0);
        if ours.planned != (served >= SERVED) {
            complaints.push(format!(
                "{}: the plan has served {served} requests",
                ours.title
            ));
        }
        runs.push(run(ours.title, false, report.outcomes));
    }
    let verdict = Verdict::new(Vec::new(), Baseline::AsItIs, runs);
    println!("{}", verdict.table());
    if complaints.is_empty() {
        return Ok(verdict.tally());
    }
    Err(
        refuse("PyTorch's own tests of device memory differ from stock's")
            .found(complaints.join("\n"))
            .expected(
                "the official wheel's outcomes, but for what tests/upstream/device.toml lists",
            )
            .remedy(format!(
                "look at the output in {}",
                paths::show(&log_folder())
            ))
            .into(),
    )
}

fn run(title: &'static str, baseline: bool, outcomes: Outcomes) -> Run {
    Run {
        title,
        baseline,
        outcomes,
        served: Served::Any,
    }
}

/// What all runs share.
struct Bench {
    choice: Choice,
    requirements: PathBuf,
    runtime: Runtime,
}

impl Bench {
    fn command(&self, environment: &Environment) -> Result<Command> {
        let mut command = self.runtime.command(&environment.python)?;
        clear_settings(&mut command);
        Ok(command)
    }

    fn tests(&self, command: Command, title: &str) -> Result<Report> {
        let log = log_folder().join(format!("device, {title}.log"));
        python::run(command, &self.choice, &self.requirements, &log)
    }

    /// The official wheel's outcomes, from the cache if their inputs have not changed.
    fn reference(
        &self,
        stock: &Environment,
        name: &'static str,
        setting: Option<(&str, &str)>,
        known: &Known,
        explained: bool,
        step: &Step,
    ) -> Result<Outcomes> {
        let mut command = self.command(stock)?;
        command.envs(setting);
        let inputs = baseline::inputs(stock, &self.choice, &self.requirements)?;
        let inputs = inputs.text(setting.map_or("", |(_, value)| value))?;
        let whole = |it: &Outcomes| !explained || known.unexplained(name, it).is_empty();
        baseline::outcomes(name, inputs, step, whole, || {
            Ok(self.tests(command, name)?.outcomes)
        })
    }

    /// A plan that serves what tests ask for, of a recorded program.
    fn plan(&self, fork: &Environment) -> Result<PathBuf> {
        let plan = paths::target().join("upstream/device.plan");
        remove(&plan)?;
        let mut command = self.command(fork)?;
        command
            .arg(paths::root().join("tests/upstream/device_steps.py"))
            .env("BUDDY_DEVICE_PLAN", &plan);
        let ended =
            super::process::run(&mut command, LIMIT, &log_folder().join("device, plan.log"))?;
        anyhow::ensure!(
            plan.is_file(),
            "no plan was made: {}\n{}",
            ended.how,
            ended.output
        );
        Ok(plan)
    }

    fn ours(&self, fork: &Environment, ours: &Ours, plan: &Path) -> Result<Report> {
        let mut command = self.command(fork)?;
        command.envs(STOCK[ours.reference].2);
        if ours.planned {
            command.env("BUDDY_DEVICE_PLAN", plan);
        } else {
            // With nothing planned: everything goes through ours, and is written down.
            let [trace, record] =
                ["device.jsonl", "device-recorded.plan"].map(|it| log_folder().join(it));
            remove(&trace)?;
            remove(&record)?;
            command
                .env("BUDDY_DEVICE_TRACE", trace)
                .env("BUDDY_DEVICE_PLAN", record);
        }
        self.tests(command, ours.title)
    }
}

fn remove(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", file.display()))
        }
        _ => Ok(()),
    }
}
