//! Tries ci/gpu/run.sh in the simulator: `tests/gpu/trial.py`.

use std::process::Command;

use anyhow::Result;

use super::{fork, pytest};
use crate::bench;
use crate::programs::{QUESTIONS, own};
use crate::python::environment::Environment;
use crate::support::tally::Tally;

/// Runs with two environments instead of a pack.
pub fn trial(fork: &Environment, stock: &Environment, python: &std::path::Path) -> Result<Tally> {
    fork::require(fork, stock, python)?;
    let mut command = pytest::command(Command::new(fork.python()), "tests/gpu");
    command
        .arg("trial.py")
        .env("PINBUDDY_XTASK", own()?)
        .env("PINBUDDY_STOCK_PYTHON", stock.python())
        .env("PINBUDDY_HARNESS", bench::harness(stock)?)
        .env("PINBUDDY_QUESTIONS", QUESTIONS.ensure()?);
    pytest::counted(&mut command)
}
