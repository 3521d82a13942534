//! The fork under real PyTorch, with the simulated CUDA in front.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::report::tally::{self, Tally};
use crate::sim::Simulator;
use crate::support::scratch::Scratch;
use crate::support::{paths, relay};
use crate::venv;

/// What the tests need besides torch.
const PACKAGES: [&str; 2] = ["pytest", "numpy"];

/// pytest in the fork's environment.
pub fn python_tests(fork: &Path, stock: &Path, python: &Path) -> Result<Tally> {
    venv::require(fork, python, &PACKAGES)?;
    venv::require(stock, python, &["numpy"])?;
    let report = Scratch::file(&paths::target().join("wheel/pytest.xml"))?;
    let mut command = Simulator::build()?.command(fork.join("bin/python"), 1)?;
    command
        .current_dir(paths::root().join("tests/python"))
        .args(["-m", "pytest", "--color=auto", "-p", "no:cacheprovider"])
        .arg("--junitxml")
        .arg(report.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PINBUDDY_STOCK_PYTHON", stock.join("bin/python"));
    let (_, success) = relay::run(&mut command)?;
    let text = fs::read_to_string(report.path()).context("pytest wrote no report")?;
    Ok(tally::junit(&text)?.checked(success))
}
