//! `cargo xtask test`: all tests, in one table. nextest runs Rust, pytest whatever imports torch, and rows are counted by their
//! JUnit files. `--quick` runs what needs no torch wheel. What proves a release rather than a change runs only with
//! `--all`, and the table says so.

mod folders;
mod fork;
mod plugin;
pub mod pytest;
mod pytorch;
mod rust;
mod simulator;
mod wheel;

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::bench;
use crate::build_wheel::{self, Wanted, plan::Plan};
use crate::cli;
use crate::python::environment::Environment;
use crate::runtime::{self, Runtime};
use crate::sanitize;
use crate::support::disk;
use crate::support::paths;
use crate::support::refusal::refuse;
use crate::support::table::Table;
use crate::support::tally::Tally;
use crate::support::typed;
use crate::venv;
use fork::Pass;

/// Bytes that a first run writes below `target` and into the cache, and some to spare: it would stop after eight minutes.
const ROOM: u64 = 13_000_000_000;

pub fn run(args: &cli::Test) -> Result<()> {
    if !args.quick {
        // Refuse what cannot be built before anything runs.
        Plan::make(&build_args(args.torch.as_deref()))?;
        if !paths::target().join("venv").exists() {
            disk::require(&paths::target(), ROOM, "run the tests")?;
        }
    }
    let mut table = Table::of(args.only.as_deref());
    let source = args.source.as_deref();
    if args.real {
        on_gpu(&mut table, source)?;
    } else if let Some(torch) = &args.torch {
        let torch = build_args(Some(torch));
        let ready = ready(&mut table, &torch, args);
        with_torch(&mut table, &torch, args, &ready);
    } else {
        whole(&mut table, args);
    }
    eprint!("\n{table}");
    if args.quick {
        eprintln!("\nnot run: what needs torch, and most random programs");
    } else if !(args.all || args.real) {
        eprintln!("\nnot run: {ONLY_ALL}; every night, or with --all");
    }
    if let Some(only) = &args.only {
        eprintln!("\nonly rows with {only:?} in their names were run");
    }
    if let Some(only) = args.only.as_deref().filter(|_| !table.has_found()) {
        return Err(refuse(format!("no row has {only:?} in its name")).remedy("cargo xtask test --help").into());
    }
    let mut typed = typed::arguments();
    // It runs its few rows, and none alone.
    typed.retain(|it| it != "--quick");
    eprint!("\n{}", table.failures(&typed));
    let total = table.total();
    println!("{} passed, {} failed", total.passed, total.failed);
    if total.failed == 0 {
        return Ok(());
    }
    Err(refuse(format!("{} failed; their output is above", total.failed)).into())
}

/// Compiles and runs everything.
fn whole(table: &mut Table, asked: &cli::Test) {
    let args = build_args(None);
    let python = &args.options.python;
    // Making an environment is mostly waiting, so it runs beside the compilers. Its errors are reported by the row
    // of environments, which repeats it.
    let makes_stock = !asked.quick && wants_torch(table);
    table.beside(
        |table| table.row(RUST, || rust::whole(asked.all)),
        |table| {
            if makes_stock {
                let _ = venv::ensure(None, true, python);
            }
            table.row("scripts and workflows", rules);
        },
    );
    if asked.quick {
        return;
    }
    table.row("the simulator's headers", || simulator::headers(&args));
    let source = asked.source.as_deref();
    let ready = table
        .beside(|table| ready(table, &args, asked), |table| table.row(PAGE, || folders::in_a_browser(python, source)));
    with_torch(table, &args, asked, &ready);
    if asked.all {
        table.row(CMAKE, || folders::cmake(&args));
        table.row(SANITIZED, sanitize::library);
    }
}

const RUST: &str = "Rust tests";
const SANITIZED: &str = "the library under sanitizers";
const FORK_WHEEL: &str = "build the fork wheel";
const INVARIANTS: &str = "wheel invariants";
const SAME_BYTES: &str = "same bytes twice";
const ENVIRONMENTS: &str = "environments";
const SIMULATOR: &str = "the simulator under stock";
const MODEL: &str = "the model of the device allocator beside stock";
const FORK: &str = "the fork in the simulator";
const BENCH: &str = "a few turns of the benchmark";
const GPU: &str = "a run for a GPU, tried in the simulator";
const PLUGIN: &str = "the plug-in as a wheel";
const CLIENTS: &str = "three clients beside stock";
const ASSERTING: &str = "the plug-in in the simulator, built with assertions";
const CMAKE: &str = "the CMake of source builds";
/// Descriptions of what proves a release.
const ONLY_ALL: &str = "slow tests and more random programs, most timing tests, all Python tests with the fork wheel and with \
                        real starts of their programs, a second build for equal bytes, what runs on a GPU, PyTorch's own tests \
                        with the seam alone and with the fork disabled, the CMake of source builds, and the library under sanitizers";

/// The rules of `tests/checkout`, and linters of scripts, workflows and dependencies: one test, since a script has no report.
fn rules() -> Result<Tally> {
    let mut command = Command::new(paths::root().join("ci/rules.sh"));
    Ok(Tally::one().checked(pytest::succeeds(&mut command)?))
}

/// Only the tests that use a GPU; PyTorch's own with a tree of them, which has to be of the release.
fn on_gpu(table: &mut Table, source: Option<&Path>) -> Result<()> {
    let args = build_args(None);
    let runtime = runtime::choose(true)?;
    let ready = table.value(ENVIRONMENTS, || Ready::make(&args, runtime, true, source));
    if let Some(ready) = ready {
        table.row("the fork on this machine", || fork::python_tests(Pass::Behaviour, &ready));
        if source.is_some() {
            table.row(UPSTREAM, || pytorch::own(&ready, &["test_pinned.py"]));
        }
    }
    Ok(())
}

/// What tests of a release run in and with.
#[derive(Debug)]
struct Ready<'a> {
    fork: Environment,
    stock: Environment,
    /// The interpreter that made the environments.
    python: &'a Path,
    runtime: Runtime,
    /// Whether to run what proves a release, too.
    all: bool,
    /// A tree with PyTorch's own tests.
    source: Option<&'a Path>,
}

impl<'a> Ready<'a> {
    fn make(args: &'a Wanted, runtime: Runtime, all: bool, source: Option<&'a Path>) -> Result<Self> {
        let (torch, python) = (args.torch.as_deref(), args.options.python.as_path());
        Ok(Self {
            fork: fork::environment(torch, python)?,
            stock: venv::ensure(torch, true, python)?,
            python,
            runtime,
            all,
            source,
        })
    }
}

/// Whether a row is to be run that needs the fork wheel.
fn wants_torch(table: &Table) -> bool {
    let all = [
        FORK_WHEEL,
        INVARIANTS,
        SAME_BYTES,
        PLUGIN,
        ENVIRONMENTS,
        SIMULATOR,
        MODEL,
        FORK,
        BENCH,
        GPU,
        CLIENTS,
        ASSERTING,
        UPSTREAM,
        SEAM,
    ];
    all.iter().any(|row| table.wants(row))
}

/// Tests of the wheels' contents, and the environments for those of their behaviour.
fn ready<'a>(table: &mut Table, args: &'a Wanted, asked: &'a cli::Test) -> Option<Ready<'a>> {
    if !wants_torch(table) {
        return None;
    }
    let (torch, python, all) = (args.torch.as_deref(), &args.options.python, asked.all);
    let built = table.value(FORK_WHEEL, || build_wheel::build(args));
    table.given(&built, INVARIANTS, |it| wheel::invariants(args, it));
    if all {
        table.given(&built, SAME_BYTES, |it| wheel::reproducible(args, it));
    }
    table.given(&built, PLUGIN, |it| plugin::wheel(torch, python, it, all));
    built.and_then(|_| {
        table.value(ENVIRONMENTS, || Ready::make(args, runtime::choose(false)?, all, asked.source.as_deref()))
    })
}

/// Tests of their behaviour.
fn with_torch(table: &mut Table, args: &Wanted, asked: &cli::Test, ready: &Option<Ready<'_>>) {
    let (torch, all) = (args.torch.as_deref(), asked.all);
    // The newest release is also tried with the model, the benchmark, the GPU run and clients.
    let newest = asked.torch.is_none();
    // It measures times, so nothing runs beside it.
    table.given(ready, FORK, |it| fork::python_tests(Pass::Release, it));
    let own_tests = |table: &mut Table| {
        let files = ["test_outcomes.py", "test_pinned.py", "test_device.py"];
        let files = &files[..if newest { 3 } else { 2 }];
        table.given(ready, UPSTREAM, |it| pytorch::own(it, files));
        table.given(ready, SIMULATOR, simulator::under_stock);
        if newest {
            table.given(ready, MODEL, simulator::model_beside);
            table.given(ready, BENCH, |it| bench::smoke(&it.fork, &it.stock));
            table.given(ready, CLIENTS, pytorch::clients);
        }
    };
    // Programs of one thread, one after the other, while the compilers and tests of the plug-in leave a core idle at times.
    table.beside(|table| table.given(ready, ASSERTING, |it| plugin::python_tests(torch, it)), own_tests);
    if newest && all {
        table.given(ready, GPU, folders::gpu_trial);
        table.given(ready, SEAM, |it| pytorch::own(it, &["test_seam.py"]));
    }
}

fn build_args(torch: Option<&str>) -> Wanted {
    venv::wanted(torch, Path::new("python3"))
}

const UPSTREAM: &str = "PyTorch's own tests";
const PAGE: &str = "reports in a browser";
const SEAM: &str = "PyTorch's own tests with the seam alone, no fork";

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn what_cannot_be_built_is_refused_before_anything_runs() {
        let cli = Cli::try_parse_from(["cargo xtask", "test", "--torch", "2.99.0"]).unwrap();
        let Command::Test(args) = cli.command else {
            panic!("another command");
        };
        let error = run(&args).unwrap_err().to_string();
        assert!(error.contains("torch 2.99.0 is not a supported release"), "{error}");
    }
}
