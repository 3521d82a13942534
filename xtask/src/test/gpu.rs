//! Tries ci/gpu/run.sh in the simulator: its tests, and every measurement once.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::fork;
use crate::bench;
use crate::programs::QUESTIONS;
use crate::runtime;
use crate::support::paths;
use crate::support::scratch::Scratch;
use crate::support::tally::Tally;

const SUITE: &str = "GPU tests";
const MEASUREMENTS: [&str; 9] = [
    "questions",
    "pins",
    "first",
    "pairs",
    "bandwidth",
    "transformer",
    "optimizer",
    "device",
    "clients",
];
/// Tests that only a real driver can answer, and that have to be skipped in the simulator.
const CANNOT: &str = "cannot be asked here";
const PLOTS: usize = 5;

/// Runs with two environments instead of a pack.
pub fn trial(fork: &Path, stock: &Path, python: &Path) -> Result<Tally> {
    fork::require(fork, stock, python)?;
    let harness = bench::harness(fork, stock)?;
    let out = Scratch::folder(&paths::target().join("gpu-trial"))?;
    let programs = out.path().join("bin");
    fs::create_dir_all(&programs)?;
    fs::copy(&harness, programs.join("harness"))?;
    fs::copy(QUESTIONS.ensure()?, programs.join("questions"))?;
    let only = [&[SUITE][..], &MEASUREMENTS].concat().join(",");
    let mut command = runtime::choose(false)?.command(fork.join("bin/python"))?;
    command
        .arg(paths::root().join("tests/gpu/run.py"))
        .args(["--simulator", "--quick", "--only", &only])
        .arg("--stock")
        .arg(stock.join("bin/python"))
        .arg("--fork")
        .arg(fork.join("bin/python"))
        .arg("--programs")
        .arg(&programs)
        .arg("--out")
        .arg(out.path())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let status = command.stdout(io::stderr()).status()?;
    let file = out.path().join("results.json");
    let text = fs::read_to_string(&file).context("the run wrote no results.json")?;
    let tally = tally(&serde_json::from_str(&text)?)?.checked(status.success());
    let drawn = bench::plot(&file, out.path())?;
    anyhow::ensure!(drawn == PLOTS, "{drawn} plots were drawn, not {PLOTS}");
    Ok(tally)
}

/// Counts tests and measurements; an error if the results are not as expected.
fn tally(results: &Value) -> Result<Tally> {
    anyhow::ensure!(
        results["simulated"] == true,
        "the results do not say that they are simulated"
    );
    let judged = |it: &Value| it["verdict"] != "not judged";
    let targets = results["targets"].as_array().context("no targets")?;
    anyhow::ensure!(
        !targets.is_empty() && !targets.iter().any(judged),
        "a figure was not measured, or was judged without a GPU: {targets:?}"
    );
    let mut tally = Tally::default();
    for name in MEASUREMENTS {
        anyhow::ensure!(
            results["measured"][name].is_object(),
            "{name} was not measured"
        );
        tally.passed += 1;
    }
    open(&results["measured"]["questions"])?;
    let tests = results["tests"][SUITE]["runs"]["ours"].as_object();
    for (test, outcome) in tests.context("no tests ran")? {
        match outcome[0].as_str() {
            Some("passed") => tally.passed += 1,
            Some("skipped") => tally.skipped += 1,
            Some(_) => tally.failed += 1,
            None => anyhow::bail!("{test} has no outcome"),
        }
    }
    Ok(tally)
}

/// Checks that questions were asked and that the simulator answered none.
fn open(questions: &Value) -> Result<()> {
    for (name, question) in questions.as_object().into_iter().flatten() {
        let answers = question["answers"].as_array().into_iter().flatten();
        let answered = answers.filter(|it| it["answer"] != CANNOT).count();
        anyhow::ensure!(
            answered == 0,
            "{name}: the simulator has answered {answered} questions that only a driver can"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn results(verdict: &str) -> Value {
        json!({
            "simulated": true,
            "targets": [{"verdict": verdict}],
            "measured": MEASUREMENTS.map(|name| (name, json!({}))).into_iter().collect::<std::collections::BTreeMap<_, _>>(),
            "tests": {SUITE: {"runs": {"ours": {"a": ["passed", ""], "b": ["skipped", "why"], "c": ["failed", ""]}}}},
        })
    }

    #[test]
    fn tests_and_measurements_are_counted() {
        let tally = tally(&results("not judged")).unwrap();
        let counts = (tally.passed, tally.failed, tally.skipped);
        assert_eq!(counts, (MEASUREMENTS.len() + 1, 1, 1));
    }

    #[test]
    fn what_the_simulator_gives_is_never_judged_and_always_whole() {
        for verdict in ["met", "missed", "not measured"] {
            assert!(tally(&results(verdict)).is_err(), "{verdict}");
        }
        let mut answered = results("not judged");
        answered["measured"]["questions"] = json!({"pace": {"answers": [{"answer": CANNOT}]}});
        assert!(tally(&answered).is_ok());
        answered["measured"]["questions"]["pace"]["answers"][0]["answer"] = json!("yes");
        assert!(tally(&answered).unwrap_err().to_string().contains("pace"));
        let mut partial = results("not judged");
        partial["measured"].as_object_mut().unwrap().remove("pairs");
        assert!(tally(&partial).unwrap_err().to_string().contains("pairs"));
    }
}
