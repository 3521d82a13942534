//! `cargo xtask test`: all tests, in one table. nextest runs Rust, pytest whatever imports torch, and rows are counted by their
//! JUnit files. `--quick` runs what needs no torch wheel. What proves a release rather than a change runs only with
//! `--all`, and the table says so.

mod fork;
mod gpu;
mod page;
mod plugin;
pub mod pytest;
mod pytorch;
mod rust;
mod simulator;
mod source;
mod wheel;

use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::Result;

use crate::bench;
use crate::build_wheel::{self, Wanted, plan::Plan};
use crate::cli;
use crate::python::environment::Environment;
use crate::runtime;
use crate::sanitize;
use crate::support::paths;
use crate::support::refusal::refuse;
use crate::support::table::Table;
use crate::support::tally::Tally;
use crate::support::typed;
use crate::venv;
use fork::Pass;
use pytorch::Pytorch;

pub fn run(args: &cli::Test) -> Result<()> {
    if !args.quick {
        // Refuse what cannot be built before anything runs.
        Plan::make(&build_args(args.torch.as_deref()))?;
    }
    let mut table = Table::of(args.only.as_deref());
    let source = args.source.as_deref();
    if args.real {
        on_gpu(&mut table, source)?;
    } else if let Some(torch) = &args.torch {
        let scope = Scope {
            newest: false,
            all: args.all,
            source,
        };
        with_torch(&mut table, &build_args(Some(torch)), &scope);
    } else {
        table.row("scripts and workflows", rules);
        if args.quick {
            table.row(RUST, || rust::whole(false));
            table.row(SANITIZED, sanitize::by_itself);
        } else {
            whole(&mut table, args.all, source);
        }
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
        return Err(refuse(format!("no row has {only:?} in its name"))
            .remedy("cargo xtask test --help")
            .into());
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
fn whole(table: &mut Table, all: bool, source: Option<&Path>) {
    let args = build_args(None);
    // Making an environment is mostly waiting, so it runs beside the compilers. Its errors are reported by the row
    // of environments, which repeats it.
    thread::scope(|scope| {
        if wants_torch(table) {
            scope.spawn(|| venv::ensure(None, true, &args.options.python));
        }
        table.row(RUST, || rust::whole(all));
        table.row(SANITIZED, sanitize::by_itself);
    });
    table.row("the simulator's headers", || simulator::headers(&args));
    table.row(PAGE, || page::in_a_browser(&args.options.python, source));
    let scope = Scope {
        newest: true,
        all,
        source,
    };
    with_torch(table, &args, &scope);
    if all {
        table.row(CMAKE, || source::cmake(&args));
        table.row(SANITIZED_LIBRARY, sanitize::library);
    }
}

const RUST: &str = "Rust tests";
const SANITIZED: &str = "the C++ side under sanitizers";
const SANITIZED_LIBRARY: &str = "the library under sanitizers";
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
                        with the seam alone, the CMake of source builds, and the library under sanitizers";

/// The rules of `tests/checkout`, and linters of scripts, workflows and dependencies: one test, since a script has no report.
fn rules() -> Result<Tally> {
    let mut command = Command::new(paths::root().join("ci/rules.sh"));
    let status = command.stdout(std::io::stderr()).status()?;
    Ok(Tally::one().checked(status.success()))
}

/// Only the tests that use a GPU; PyTorch's own with a tree of them, which has to be of the release.
fn on_gpu(table: &mut Table, source: Option<&Path>) -> Result<()> {
    let args = build_args(None);
    let runtime = runtime::choose(true)?;
    let python = args.options.python.as_path();
    if let Some((fork, stock)) = table.value(ENVIRONMENTS, || environments(&args, python)) {
        table.row("the fork on this machine", || {
            fork::python_tests(Pass::Behaviour, true, &fork, &stock, python, &runtime)
        });
        if source.is_some() {
            let pytorch = Pytorch {
                fork: &fork,
                stock: &stock,
                python,
                runtime: &runtime,
                source,
                all: true,
            };
            table.row(UPSTREAM, || pytorch.own(&["test_pinned.py"]));
        }
    }
    Ok(())
}

/// Runs the tests of a release.
struct Scope<'a> {
    /// Whether this is the newest release, which is also tried with the model, the benchmark, the GPU run and clients.
    newest: bool,
    /// Whether to run what proves a release rather than a change.
    all: bool,
    /// The source of PyTorch's own tests.
    source: Option<&'a Path>,
}

impl Scope<'_> {
    fn has(&self, row: &str) -> bool {
        let of_newest = [MODEL, BENCH, GPU, CLIENTS, SEAM];
        let newest = self.newest || !of_newest.contains(&row);
        newest && (self.all || ![SAME_BYTES, GPU, SEAM].contains(&row))
    }
}

/// The rows that need the fork wheel.
fn of_torch() -> impl Iterator<Item = &'static str> {
    let first = [INVARIANTS, SAME_BYTES, PLUGIN, ENVIRONMENTS];
    first.into_iter().chain(IN_ENVIRONMENTS)
}

fn wants_torch(table: &Table) -> bool {
    table.wants(FORK_WHEEL) || of_torch().any(|row| table.wants(row))
}

/// Tests of the wheel: its contents and its behaviour.
fn with_torch(table: &mut Table, args: &Wanted, scope: &Scope<'_>) {
    if !wants_torch(table) {
        return;
    }
    let Some(built) = table.value(FORK_WHEEL, || build_wheel::build(args)) else {
        for row in of_torch().filter(|row| scope.has(row)) {
            table.not_run(row, "there is no fork wheel");
        }
        return;
    };
    let (python, torch) = (args.options.python.as_path(), args.torch.as_deref());
    table.row(INVARIANTS, || wheel::invariants(args, &built));
    if scope.has(SAME_BYTES) {
        table.row(SAME_BYTES, || wheel::reproducible(args, &built));
    }
    table.row(PLUGIN, || plugin::wheel(torch, python, &built, scope.all));
    let ready = table.value(ENVIRONMENTS, || {
        Ok((environments(args, python)?, runtime::choose(false)?))
    });
    let Some(((fork, stock), runtime)) = ready else {
        for row in IN_ENVIRONMENTS.into_iter().filter(|row| scope.has(row)) {
            table.not_run(row, "there are no environments");
        }
        return;
    };
    let pytorch = Pytorch {
        fork: &fork,
        stock: &stock,
        python,
        runtime: &runtime,
        source: scope.source,
        all: scope.all,
    };
    let runs = |row: &str| -> Result<Tally> {
        match row {
            SIMULATOR => simulator::under_stock(&stock, python),
            MODEL => simulator::model_beside(&stock, scope.all),
            FORK => fork::python_tests(Pass::Release, scope.all, &fork, &stock, python, &runtime),
            BENCH => bench::smoke(&fork, &stock),
            GPU => gpu::trial(&fork, &stock, python),
            CLIENTS => pytorch.clients(),
            ASSERTING => plugin::python_tests(torch, &fork, &stock, python, scope.all),
            UPSTREAM => {
                let files = ["test_outcomes.py", "test_pinned.py", "test_device.py"];
                pytorch.own(&files[..if scope.newest { 3 } else { 2 }])
            }
            SEAM => pytorch.own(&["test_seam.py"]),
            _ => anyhow::bail!("nobody runs it"),
        }
    };
    for row in IN_ENVIRONMENTS.into_iter().filter(|row| scope.has(row)) {
        table.row(row, || runs(row));
    }
}

fn environments(args: &Wanted, python: &Path) -> Result<(Environment, Environment)> {
    let torch = args.torch.as_deref();
    let fork = venv::ensure(torch, false, python)?;
    Ok((fork, venv::ensure(torch, true, python)?))
}

fn build_args(torch: Option<&str>) -> Wanted {
    venv::wanted(torch, Path::new("python3"))
}

const UPSTREAM: &str = "PyTorch's own tests";
const PAGE: &str = "reports in a browser";
const SEAM: &str = "PyTorch's own tests with the seam alone, no fork";

/// Rows of what runs in environments, in their order.
const IN_ENVIRONMENTS: [&str; 9] = [
    SIMULATOR, MODEL, FORK, BENCH, GPU, CLIENTS, ASSERTING, UPSTREAM, SEAM,
];

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
        assert!(
            error.contains("torch 2.99.0 is not a supported release"),
            "{error}"
        );
    }
}
