//! `cargo xtask bench`: handed on to `tests/bench/run.py`, which asks this program for environments and the simulator.

use std::convert::Infallible;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::cli::Handed;
use crate::programs::{become_it, own};
use crate::python::environment::Environment;
use crate::support::paths;
use crate::support::tally::Tally;
use crate::test::pytest;

/// `bench`: replaces this process.
pub fn run(handed: &Handed) -> Result<Infallible> {
    let mut command = program()?;
    become_it(command.args(&handed.words))
}

fn program() -> Result<Command> {
    let mut command = python("tests/bench/run.py");
    command.arg("--xtask").arg(own()?);
    Ok(command)
}

fn python(file: &str) -> Command {
    let mut command = Command::new("python3");
    command.arg(paths::root().join(file));
    command
}

/// A few turns of the parts that need the harness alone: for `cargo xtask test`.
pub fn smoke(fork: &Environment, stock: &Environment) -> Result<Tally> {
    let mut command = program()?;
    command.arg("--smoke").arg("--fork").arg(&**fork);
    let succeeds = pytest::succeeds(command.arg("--stock").arg(&**stock))?;
    Ok(Tally::one().checked(succeeds))
}

/// The harness, compiled unless it is current.
pub fn harness(stock: &Environment) -> Result<PathBuf> {
    let mut command = python("tests/python/native.py");
    command.arg(paths::root().join("tests/bench"));
    command.arg(stock.torch()).arg("-O2").stderr(Stdio::inherit());
    let done = command.output();
    let done = done.with_context(|| format!("running {command:?}"))?;
    anyhow::ensure!(done.status.success(), "{command:?}: {}", done.status);
    Ok(String::from_utf8(done.stdout)?.trim_end().into())
}
