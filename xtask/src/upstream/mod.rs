//! `cargo xtask test-upstream`: runs PyTorch's own pinned-memory tests with the official wheel and the fork.
//!
//! The tests are upstream's, unchanged: the C++ allocator test and test_cuda.py's pinned-memory tests, on a real
//! GPU also those of graphs and copies. The official wheel is the baseline: its failures are shown and, in the
//! simulator, have to be explained. A test that only the fork fails is a failure of the run. `--device`: its tests
//! of device memory.

mod archive;
mod baseline;
mod cpp;
mod debian;
pub mod device;
pub mod environment;
mod outcome;
pub mod portable;
mod process;
mod python;
mod seam;
mod source;
pub mod tested;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::build_wheel::tree;
use crate::cli;
use crate::python::Python;
use crate::python::tools::{self, Tools};
use crate::runtime::{self, Runtime};
use crate::support::paths;
use crate::support::progress::{Progress, Step};
use crate::support::refusal::refuse;
use crate::support::tally::Tally;
use crate::venv;
use environment::Environment;
use outcome::{Baseline, Outcome, Outcomes, Run, Served, Verdict};
use seam::Seam;
use source::{Selection, Source};
use tested::Tested;
use xtask_patchkit::release::Versions;

/// A configuration for the tests.
struct Configuration {
    title: &'static str,
    settings: &'static [(&'static str, &'static str)],
    /// Whether the engine must have served requests.
    engine: bool,
}

const STOCK: [Configuration; 1] = [Configuration {
    title: "stock",
    settings: &[],
    engine: false,
}];

/// Upstream's requests are below the default threshold, so only the second configuration sends them through the
/// engine.
const FORK: [Configuration; 3] = [
    Configuration {
        title: "fork",
        settings: &[],
        engine: false,
    },
    Configuration {
        title: "fork, all through the engine",
        settings: &[
            ("BUDDY_THRESHOLD_MB", "0"),
            ("BUDDY_BLOCK_SIZE_MB", "64"),
            ("BUDDY_BLOCK_COUNT", "2"),
        ],
        engine: true,
    },
    Configuration {
        title: "fork, disabled",
        settings: &[("BUDDY_DISABLE", "1")],
        engine: false,
    },
];

const SEAM: Configuration = Configuration {
    title: "stock with the seam",
    settings: &[],
    engine: true,
};

/// What all runs share.
struct Bench {
    source: Source,
    /// Whether the user chose it.
    named: bool,
    runtime: Runtime,
    requirements: PathBuf,
}

/// PyTorch's memory_viz, which no wheel has: in this tree of its sources, which may lack it, or in Debian's.
pub fn viewer(source: Option<&Path>, step: &Step) -> Result<PathBuf> {
    let root = source.map_or_else(|| debian::ensure(step), |it| Ok(it.to_path_buf()))?;
    Ok(root.join("torch/utils/viz/MemoryViz.js"))
}

pub fn run(args: &cli::TestUpstream) -> Result<()> {
    if args.device {
        return device::count(args.source.as_deref()).map(drop);
    }
    count(args).map(drop)
}

/// Runs everything, prints the table, and fails if the fork does.
pub fn count(args: &cli::TestUpstream) -> Result<Tally> {
    let interpreter = Path::new("python3");
    let python = Python::probe(interpreter)?;
    // First, whatever may be missing.
    let runtime = runtime::choose(args.real)?;
    let environments = if args.stock || args.seam { 1 } else { 2 };
    let others = match (args.stock, args.seam) {
        (_, true) => 3,
        (true, false) => 0,
        (false, false) => FORK.len(),
    };
    let progress = Progress::new(2 + 2 * environments + STOCK.len() + others);

    let source = progress.step("get PyTorch's tests", |step| {
        let root = args
            .source
            .clone()
            .map_or_else(|| debian::ensure(step), Ok)?;
        Source::open(&root, Selection::of(&runtime))
    })?;
    let (tools, requirements) = progress.step("get what they need", |step| {
        cpp::ensure_gtest(step)?;
        let tools = tools::ensure(&python)?;
        let requirements = python::ensure_requirements(&python, &tools, step)?;
        Ok((tools, requirements))
    })?;
    let bench = Bench {
        source,
        named: args.source.is_some(),
        runtime,
        requirements,
    };

    let mut runs = Vec::new();
    let wheels = [
        ("the official wheel", true, &STOCK[..]),
        ("the fork", false, &FORK[..]),
    ];
    for (name, stock, configurations) in &wheels[..environments] {
        let folder = venv::ensure(args.torch.as_deref(), *stock, interpreter)?;
        let (environment, program) = bench.prepare(name, &folder, &tools, &progress)?;
        for configuration in *configurations {
            runs.push(
                progress.step(&format!("test: {}", configuration.title), |step| {
                    if *stock && !bench.runtime.is_real() {
                        bench.baseline(configuration, &environment, &program, step)
                    } else {
                        bench.run(configuration, &environment, &program, None)
                    }
                })?,
            );
        }
        if args.seam {
            let seam = progress.step("compile the test and a backend on the seam", |step| {
                bench.seam(&environment, &tools, step)
            })?;
            let log = log_folder().join("the seam's own test.log");
            let own = progress.step("test: the seam's own test", |_| {
                seam.run_test(&bench.runtime, bench.source.selection.limit(), &log)
            })?;
            let run = progress.step("test: stock with the seam", |_| {
                bench.run(&SEAM, &environment, &program, Some(&seam))
            })?;
            return conclude_seam(&bench, runs, run, &own, &seam, &environment);
        }
    }
    conclude(&bench, runs)
}

/// As `conclude`, and keeps the results for the pull request.
fn conclude_seam(
    bench: &Bench,
    mut runs: Vec<Run>,
    run: Run,
    own: &Outcomes,
    seam: &Seam,
    environment: &Environment,
) -> Result<Tally> {
    let passed = |outcomes: &Outcomes, names: &[String]| {
        let of = |name: &&String| outcomes.get(*name) == Some(&Outcome::Passed);
        names.iter().filter(of).count()
    };
    let (cpp, python) = (&bench.source.cpp_tests, &bench.source.python_tests);
    let results = vec![
        format!(
            "host_allocator_subclass_test: {} of {} passed",
            own.len(),
            own.len()
        ),
        format!(
            "cuda_caching_host_allocator_test, on {}: {} of {} passed",
            seam.backend,
            passed(&run.outcomes, cpp),
            cpp.len()
        ),
        format!(
            "test_cuda.py, pinned memory, on the same: {} of {} passed",
            passed(&run.outcomes, python),
            python.len()
        ),
    ];
    runs.push(run);
    let mut tally = conclude(bench, runs)?;
    tally.passed += own.len();
    let on = format!("torch {}, {}", environment.version, bench.runtime.place());
    Tested::new(&seam.patches, on, results).write()?;
    Ok(tally)
}

impl Bench {
    /// Inspects an environment and compiles the C++ test against it.
    fn prepare(
        &self,
        name: &'static str,
        folder: &Path,
        tools: &Tools,
        progress: &Progress,
    ) -> Result<(Environment, PathBuf)> {
        let place = self.runtime.place();
        let environment = progress.step(&format!("look at {name} {place}"), |_| {
            Environment::probe(name, folder, &self.runtime)
        })?;
        let program = progress.step(&format!("compile the C++ test against {name}"), |step| {
            let versions = Versions::read(paths::root())?;
            let cuda = versions.cuda(&environment.cuda)?;
            let include = tree::ensure_cuda(&paths::cache(), cuda, tools, step)?;
            let folder = paths::target().join("upstream").join(&environment.version);
            cpp::compile(&self.source, &environment, &include, &folder)
        })?;
        Ok((environment, program))
    }

    /// The seam on an environment's headers.
    fn seam(&self, environment: &Environment, tools: &Tools, step: &Step) -> Result<Seam> {
        let versions = Versions::read(paths::root())?;
        let cuda = versions.cuda(&environment.cuda)?;
        let include = tree::ensure_cuda(&paths::cache(), cuda, tools, step)?;
        let folder = paths::target().join("upstream/seam");
        Seam::make(environment, &include, self.source.root(), &folder)
    }

    /// The official wheel's outcomes, from the cache if their inputs have not changed.
    fn baseline(
        &self,
        configuration: &Configuration,
        environment: &Environment,
        program: &Path,
        step: &Step,
    ) -> Result<Run> {
        let run = || {
            Ok(self
                .run(configuration, environment, program, None)?
                .outcomes)
        };
        let choice = self.source.python();
        let inputs = baseline::inputs(environment, &choice, &self.requirements)?.file(program)?;
        let outcomes = baseline::outcomes("stock", inputs, step, outcome::is_explained, run)?;
        Ok(Run {
            title: configuration.title,
            baseline: true,
            outcomes,
            served: Served::Any,
        })
    }

    /// Runs all tests in one configuration.
    fn run(
        &self,
        configuration: &Configuration,
        environment: &Environment,
        program: &Path,
        seam: Option<&Seam>,
    ) -> Result<Run> {
        let command = |program: &Path| -> Result<Command> {
            let mut command = self.runtime.command(program)?;
            crate::python::environment::clear_settings(&mut command);
            command.envs(configuration.settings.iter().copied());
            if let Some(seam) = seam {
                seam.in_front(&mut command);
            }
            Ok(command)
        };
        let log = |language| log_folder().join(format!("{} {language}.log", configuration.title));
        let (mut outcomes, served_cpp) = cpp::run(
            &mut command(program)?,
            self.source.selection.limit(),
            &log("C++"),
        )?;
        let report = python::run(
            command(&environment.python)?,
            &self.source.python(),
            &self.requirements,
            &log("Python"),
        )?;
        outcomes.extend(report.outcomes);
        let served = match seam {
            // Both parts must have used it.
            None if configuration.engine => {
                Served::Wanted(served_cpp.min(report.served).unwrap_or(0))
            }
            Some(_) => Served::Wanted(said_served(&[log("C++"), log("Python")])),
            None => Served::Any,
        };
        Ok(Run {
            title: configuration.title,
            baseline: configuration.title == STOCK[0].title,
            outcomes,
            served,
        })
    }
}

/// How many programs report that the preloaded backend served them; 0 if any does not.
fn said_served(logs: &[PathBuf]) -> u64 {
    let says = |log: &PathBuf| {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        text.lines().any(|line| line == seam::SERVED)
    };
    if logs.iter().all(says) {
        logs.len() as u64
    } else {
        0
    }
}

/// The folder of the runs' output.
fn log_folder() -> PathBuf {
    paths::target().join("upstream").join("logs")
}

fn conclude(bench: &Bench, runs: Vec<Run>) -> Result<Tally> {
    let Source {
        cpp_tests,
        python_tests,
        ..
    } = &bench.source;
    let expected = cpp_tests.iter().chain(python_tests).cloned().collect();
    let baseline = if bench.runtime.is_real() || bench.named {
        Baseline::AsItIs
    } else {
        Baseline::Whole
    };
    let verdict = Verdict::new(expected, baseline, runs);
    println!("{}", verdict.table());
    let complaints = verdict.complaints();
    if complaints.is_empty() {
        return Ok(verdict.tally());
    }
    Err(refuse("PyTorch's own tests do not all pass")
        .found(complaints.join("\n"))
        .expected(
            "what passes with the official wheel to pass with the fork, and every test to run",
        )
        .remedy(format!(
            "look at the output in {}",
            paths::show(&log_folder())
        ))
        .into())
}
