//! PyTorch's own tests, and client programs: `tests/upstream` and `tests/clients`, with stock and the fork.

use std::env;
use std::process::Command;

use anyhow::Result;

use super::{Ready, fork, pytest};
use crate::support::tally::Tally;
use crate::venv;

/// The imports of test_cuda.py and torch.testing besides torch and numpy.
const PACKAGES: [&str; 3] = ["expecttest", "hypothesis", "psutil"];

/// Files of `tests/upstream`.
pub fn own(ready: &Ready<'_>, files: &[&str]) -> Result<Tally> {
    let include = venv::cuda_include(&ready.stock, ready.python)?;
    let mut command = command(ready, "tests/upstream")?;
    command
        .arg("--packages")
        .arg(pytest::packages(ready.python, &PACKAGES)?)
        .arg("--include")
        .arg(env::join_paths(include)?);
    if let Some(source) = ready.source {
        command.arg("--source").arg(std::path::absolute(source)?);
    }
    if ready.runtime.is_real() {
        command.arg("--real");
    }
    pytest::counted(command.args(files))
}

/// The clients that are quick and need torch alone.
pub fn clients(ready: &Ready<'_>) -> Result<Tally> {
    // With a folder: pytest looks for conftest.py, which has the options, beside what else it takes for a file.
    pytest::counted(command(ready, "tests/clients")?.args(["-m", "quick", "."]))
}

fn command(ready: &Ready<'_>, folder: &str) -> Result<Command> {
    let python = ready.runtime.command(ready.fork.python())?;
    let mut command = pytest::command(python, folder);
    command.arg("--stock").arg(ready.stock.python());
    command.envs(ready.all.then_some((fork::ALL, "1")));
    Ok(command)
}
