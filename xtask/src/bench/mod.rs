//! `cargo xtask bench`: handed on to the program `xtask-bench`.
//!
//! The program has the options, measures and draws. This module makes the environments, the simulator and the
//! harness.

pub mod harness;

use std::convert::Infallible;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, exit};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::cli::Handed;
use crate::programs::{BENCH, become_it};
use crate::python::environment::Environment;
use crate::runtime::{self, Runtime};
use crate::support::lock;
use crate::support::progress::Progress;
use crate::support::tally::Tally;
use crate::venv;

/// What a command line of `bench` needs, as reported by the program.
#[derive(Deserialize)]
struct Needs {
    fork: Option<PathBuf>,
    stock: Option<PathBuf>,
    python: PathBuf,
    real: bool,
    steps: usize,
}

/// `bench`: makes what the command line needs, and hands both over.
pub fn run(handed: &Handed) -> Result<Infallible> {
    let program = BENCH.ensure()?;
    let mut command = Command::new(&program);
    command.arg("bench").args(&handed.words);
    let needs = needs(&program, handed)?;
    let lock = lock::take("bench")?;
    // First, whatever may be missing.
    let runtime = runtime::choose(needs.real)?;
    let environment = |at_hand: Option<&PathBuf>, stock: bool| match at_hand {
        Some(folder) => venv::open(folder, stock),
        None => venv::ensure(None, stock, &needs.python),
    };
    let fork = environment(needs.fork.as_ref(), false)?;
    let stock = environment(needs.stock.as_ref(), true)?;
    let progress = Progress::new(needs.steps);
    let harness = progress.step("the harness", |step| harness::ensure(&stock, step))?;
    for (given, option, made) in [
        (needs.fork.is_some(), "--fork", &fork),
        (needs.stock.is_some(), "--stock", &stock),
    ] {
        if !given {
            command.arg(option).arg(&**made);
        }
    }
    hand_over(&mut command, &harness, &runtime);
    command.arg("--xtask").arg(env::current_exe()?);
    // `build-wheel` takes the lock itself.
    drop(lock);
    become_it(command)
}

/// Asks the program what it needs. If it prints help or refuses, this process exits with its status.
fn needs(program: &Path, handed: &Handed) -> Result<Needs> {
    let mut command = Command::new(program);
    command.args(["bench", "--needs"]).args(&handed.words);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("running {}", program.display()))?;
    if let (true, Ok(needs)) = (
        output.status.success(),
        serde_json::from_slice(&output.stdout),
    ) {
        return Ok(needs);
    }
    print!("{}", String::from_utf8_lossy(&output.stdout));
    exit(output.status.code().unwrap_or(1))
}

fn hand_over(command: &mut Command, harness: &Path, runtime: &Runtime) {
    command.arg("--harness").arg(harness);
    if let Runtime::Simulated(simulator) = runtime {
        command.arg("--simulator").arg(simulator.folder());
    }
}

/// A few turns of the parts that need the harness alone: for `cargo xtask test`.
pub fn smoke(fork: &Environment, stock: &Environment) -> Result<Tally> {
    let harness = harness(fork, stock)?;
    let runtime = runtime::choose(false)?;
    let mut command = Command::new(BENCH.ensure()?);
    command.arg("smoke").arg("--fork").arg(&**fork);
    command.arg("--stock").arg(&**stock);
    hand_over(&mut command, &harness, &runtime);
    succeed(&mut command)?;
    Ok(Tally::one())
}

/// The harness, compiled unless it is current.
pub fn harness(_fork: &Path, stock: &Path) -> Result<PathBuf> {
    let stock = venv::open(stock, true)?;
    Progress::new(1).step("the harness", |step| harness::ensure(&stock, step))
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status();
    let status = status.with_context(|| format!("running {command:?}"))?;
    anyhow::ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
