//! The fork under real PyTorch, with the simulated CUDA in front or on a real GPU.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::runtime::Runtime;
use crate::support::scratch::Scratch;
use crate::support::tally::{self, Tally};
use crate::support::{paths, relay};
use crate::venv;

/// pytest in the fork's environment: what measures time by itself, all else side by side.
pub fn python_tests(fork: &Path, stock: &Path, python: &Path, runtime: &Runtime) -> Result<Tally> {
    require(fork, stock, python)?;
    let mut tally = untimed(fork, stock, runtime, |command| {
        command.env_remove("PINBUDDY_EXPECT_DEBUG");
    })?;
    tally.add(pytest(fork, stock, runtime, |command| {
        command
            .env_remove("PINBUDDY_EXPECT_DEBUG")
            .args(["-m", "timing"]);
    })?);
    Ok(tally)
}

/// The tests that measure no time, two at a time: most of each is waiting and starting up.
pub fn untimed(
    environment: &Path,
    stock: &Path,
    runtime: &Runtime,
    adjust: impl FnOnce(&mut Command),
) -> Result<Tally> {
    pytest(environment, stock, runtime, |command| {
        command.args(["-m", "not timing", "--numprocesses", "2"]);
        adjust(command);
    })
}

/// Installs what the tests need besides torch.
pub fn require(fork: &Path, stock: &Path, python: &Path) -> Result<()> {
    venv::require(fork, python, &["pytest", "pytest-xdist", "numpy"])?;
    venv::require(stock, python, &["numpy"])
}

/// pytest on `tests/python` in an environment with a fork, as `adjust` would have it.
fn pytest(
    environment: &Path,
    stock: &Path,
    runtime: &Runtime,
    adjust: impl FnOnce(&mut Command),
) -> Result<Tally> {
    let report = Scratch::file(&paths::target().join("wheel/pytest.xml"))?;
    let mut command = runtime.command(environment.join("bin/python"))?;
    command
        .current_dir(paths::root().join("tests/python"))
        .args(["-m", "pytest", "--color=auto", "-p", "no:cacheprovider"])
        .arg("--junitxml")
        .arg(report.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env(
            "PINBUDDY_TEST_REAL",
            if runtime.is_real() { "1" } else { "0" },
        )
        .env("PINBUDDY_STOCK_PYTHON", stock.join("bin/python"));
    adjust(&mut command);
    let (_, success) = relay::run(&mut command)?;
    let text = fs::read_to_string(report.path()).context("pytest wrote no report")?;
    Ok(tally::junit(&text)?.checked(success))
}
