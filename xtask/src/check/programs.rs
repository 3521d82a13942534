//! Tests of the Python suite that can go on for longer: each call fails in turn, and everything at once.
//!
//! A test adds a line of JSON to the file that `PINBUDDY_FIGURES` names: what it explored, and how much.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::Effort;
use super::row::Explored;
use crate::support::scratch::Scratch;
use crate::support::{cargo, paths, relay, tally};
use crate::test::plugin::{self, Library};
use crate::venv;

/// Every call of the programs of `tests/python/faults` fails in turn.
pub fn faults(_effort: Effort) -> Result<Explored> {
    run("test_faults.py", &[("PINBUDDY_TEST_SWEEP", "all")])
}

/// `tests/stress/soak.cpp`.
pub fn soak(effort: Effort) -> Result<Explored> {
    let seconds = effort.soak_seconds.to_string();
    run("test_soak.py", &[("PINBUDDY_SOAK_SECONDS", &seconds)])
}

/// Defects of programs and of allocators, which `BUDDY_GUARD=1` and the simulator find; and broken states of the engine
/// and of slots, which the audit and a model find, here and in processes of their own.
pub fn defects(_effort: Effort) -> Result<Explored> {
    let explored = run("test_guard.py", &[])?;
    let mut command = cargo::command();
    command
        .args(["test", "--package", "pinbuddy-core"])
        .args(["--package", "pinbuddy-slots", "--lib", "--"])
        .args(["audit::", "seeded::"]);
    let (text, success) = relay::run(&mut command)?;
    let tally = tally::cargo(&text).checked(success);
    ensure!(
        tally.failed == 0 && tally.passed > 0,
        "tests of broken states failed, or there are none; their output is above"
    );
    Ok(explored.figure("tests of broken states", tally.passed as u64))
}

/// The file of tests with the asserting plug-in, and variables that have it do more.
fn run(file: &str, settings: &[(&str, &str)]) -> Result<Explored> {
    let python = Path::new("python3");
    let fork = venv::ensure(None, false, python)?;
    let stock = venv::ensure(None, true, python)?;
    let figures = Scratch::file(&paths::target().join("check-figures.jsonl"))?;
    let tally = plugin::asserting(None, &fork, &stock, python, Library::Debug, |command| {
        command
            .arg(file)
            .envs(settings.iter().copied())
            .env("PINBUDDY_FIGURES", figures.path());
    })?;
    let text = fs::read_to_string(figures.path()).context("reading the tests' figures")?;
    ensure!(!text.is_empty(), "the tests explored nothing");
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for line in text.lines() {
        let figures: BTreeMap<String, u64> = serde_json::from_str(line)?;
        for (name, number) in figures {
            *sums.entry(name).or_default() += number;
        }
    }
    let figures = sums.into_iter();
    let explored = figures.fold(Explored::default(), |row, (name, number)| {
        row.figure(name, number)
    });
    Ok(match tally.failed {
        0 => explored,
        failed => explored.wrong(format!("{failed} tests failed; their output is above")),
    })
}
