//! The parts of the benchmark that are Python programs of `tests/python`.

use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;

use super::environments::Environments;
use super::figure::{Results, Target};
use super::stats::Spread;
use xtask_support::paths;
use xtask_support::refusal::refuse;
use xtask_support::scratch::Scratch;

/// The name in `cold_start.py` of our own memory in transparent huge pages.
const TRANSPARENT: &str = "pages, transparent";

/// A cold start, and a program beside a warm-up.
pub fn warm_up(environments: &Environments, results: &mut Results) -> Result<()> {
    let measured = run(environments, "cold_start", results)?;
    let rounds = |part: &str, way: &str| -> Option<Vec<f64>> {
        let rounds = measured[part][way]["rounds"].as_array()?;
        rounds.iter().map(Value::as_f64).collect()
    };
    let thp = rounds("warm_up", TRANSPARENT);
    let hugetlb = rounds("warm_up", "pages, 2 MiB");
    let least = thp
        .as_deref()
        .map(|it| Target::AtLeast(Spread::of(it).median));
    for (name, rounds, target) in [
        ("thp", thp, Some(Target::AtLeast(3.0))),
        ("hugetlb", hugetlb, least),
    ] {
        match rounds {
            Some(rounds) => results.rounds(&["warmup_speedup", name], &rounds, target),
            None => results.skip(&format!("warmup_speedup {name}"), "no such pages here"),
        }
    }
    if let Some(rounds) = rounds("beside", TRANSPARENT) {
        let target = Some(Target::AtMost(1.1));
        results.rounds(&["beside_warm_up"], &rounds, target);
    }
    results.detail("warm_up", measured);
    Ok(())
}

/// Requests below the threshold, and imports.
pub fn overhead(environments: &Environments, results: &mut Results) -> Result<()> {
    let measured = run(environments, "measure", results)?;
    let delta = measured["import"]["delta_ms"].as_f64();
    results.value(
        &["import_ms_delta"],
        delta.context("measure.py says no import delta_ms")?,
        Some(Target::AtMost(20.0)),
    );
    results.detail("overhead", measured);
    Ok(())
}

/// Requirements of a production allocator.
pub fn production(environments: &Environments, results: &mut Results) -> Result<()> {
    let measured = run(environments, "production", results)?;
    results.detail("production", measured);
    Ok(())
}

/// Runs `tests/python/NAME.py` with both environments, and adds its tables to the results.
fn run(environments: &Environments, name: &str, results: &mut Results) -> Result<Value> {
    let folder = paths::root().join("tests/python");
    let file = Scratch::file(&paths::target().join(format!("bench/{name}.json")))?;
    let interpreter = environments.stock.python();
    let mut command = environments.command(&interpreter)?;
    command
        .current_dir(&folder)
        .arg(format!("{name}.py"))
        .args([&interpreter, &environments.fork.python()])
        .arg("--json")
        .arg(file.path())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command
        .output()
        .with_context(|| format!("running {name}.py"))?;
    if !output.status.success() {
        return Err(refuse(format!("tests/python/{name}.py failed"))
            .found(String::from_utf8_lossy(&output.stderr).trim())
            .expected("two working environments, and memory for what it pins")
            .remedy("pinbuddy doctor says what this machine has")
            .into());
    }
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    results.tables.push(table);
    let measured = fs::read(file.path()).with_context(|| format!("{name}.py wrote no results"))?;
    serde_json::from_slice(&measured).with_context(|| format!("reading the results of {name}.py"))
}
