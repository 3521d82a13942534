//! Tries ci/gpu/run.sh in the simulator: `tests/gpu/trial.py`.

use std::process::Command;

use anyhow::Result;

use super::{Ready, fork, pytest};
use crate::bench;
use crate::programs::{own, questions};
use crate::support::tally::Tally;

/// Runs with two environments instead of a pack.
pub fn trial(ready: &Ready<'_>) -> Result<Tally> {
    fork::require(ready)?;
    let stock = &ready.stock;
    let mut command = pytest::command(Command::new(ready.fork.python()), "tests/gpu");
    command
        .arg("trial.py")
        .env("PINBUDDY_XTASK", own()?)
        .env("PINBUDDY_STOCK_PYTHON", stock.python())
        .env("PINBUDDY_HARNESS", bench::harness(stock)?)
        .env("PINBUDDY_QUESTIONS", questions()?);
    pytest::counted(&mut command)
}
