//! Tests of the Python suite that can go on for longer: each call fails in turn, and everything at once.
//!
//! A test adds a line of JSON to the file that `PINBUDDY_FIGURES` names: what it explored, and how much.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::Effort;
use super::row::Explored;
use crate::support::paths;
use crate::support::scratch::Scratch;
use crate::test::plugin;
use crate::venv;

/// Every call of the programs of `tests/python/faults` fails in turn.
pub fn faults(_effort: Effort) -> Result<Explored> {
    run("test_faults.py", "PINBUDDY_TEST_SWEEP", "all")
}

/// `tests/stress/soak.cpp`.
pub fn soak(effort: Effort) -> Result<Explored> {
    run(
        "test_soak.py",
        "PINBUDDY_SOAK_SECONDS",
        &effort.seconds.to_string(),
    )
}

/// The file of tests with the asserting plug-in, and the variable that has it do more.
fn run(file: &str, name: &str, value: &str) -> Result<Explored> {
    let python = Path::new("python3");
    let fork = venv::ensure(None, false, python)?;
    let stock = venv::ensure(None, true, python)?;
    let figures = Scratch::file(&paths::target().join("check-figures.jsonl"))?;
    let tally = plugin::asserting(None, &fork, &stock, python, |command| {
        command
            .arg(file)
            .env(name, value)
            .env("PINBUDDY_FIGURES", figures.path());
    })?;
    ensure!(
        tally.failed == 0,
        "{} tests failed; their output is above",
        tally.failed
    );
    let text = fs::read_to_string(figures.path()).context("the tests explored nothing")?;
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for line in text.lines() {
        let figures: BTreeMap<String, u64> = serde_json::from_str(line)?;
        for (name, number) in figures {
            *sums.entry(name).or_default() += number;
        }
    }
    Ok(sums
        .into_iter()
        .fold(Explored::default(), |row, (name, number)| {
            row.figure(name, number)
        }))
}
