//! libFuzzer on each target of `tests/fuzz`, with the stable toolchain: LLVM's pass that counts what is reached is asked
//! for by name, and libfuzzer-sys compiles libFuzzer itself.
//!
//! What it finds on the way stays in `target/fuzz/corpus`, and is begun with the next time; an input that fails is
//! left in `target/fuzz/failed` and named.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::Effort;
use super::row::Explored;
use crate::support::refusal::refuse;
use crate::support::{cargo, paths, relay};

/// What the compiler is told besides: that libFuzzer is the engine, and to count edges and comparisons.
const FLAGS: [&str; 8] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
];

/// The folder of the targets' corpora.
const CORPORA: &str = "tests/fuzz/corpus";

/// The check.
pub fn run(effort: Effort) -> Result<Explored> {
    let program = compile()?;
    let names = targets()?;
    let mut explored = Explored::default();
    let (mut all, mut failed) = (0, Vec::new());
    for name in &names {
        match one(&program, name, effort.seconds)? {
            Some(executions) => all += executions,
            None => failed.push(name.as_str()),
        }
    }
    explored = explored
        .figure("targets", names.len() as u64)
        .figure("executions", all);
    if failed.is_empty() {
        return Ok(explored);
    }
    let folder = paths::target().join("fuzz/failed");
    Err(refuse(format!("fuzzing found something in {}", failed.join(", ")))
        .found(format!("the input is in {}", paths::show(&folder)))
        .remedy(format!(
            "copy it to {CORPORA}/{}, where the tests have it from then on, and mend what fails",
            failed[0]
        ))
        .into())
}

fn targets() -> Result<Vec<String>> {
    let folder = paths::root().join(CORPORA);
    let entries = fs::read_dir(&folder).with_context(|| format!("reading {CORPORA}"))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// All targets in one program, which is libFuzzer. In a folder of its own: other flags compile everything anew.
fn compile() -> Result<PathBuf> {
    let mut command = cargo::command();
    command
        .args([
            "build",
            "--package",
            "pinbuddy-fuzz",
            "--example",
            "libfuzzer",
        ])
        .args(["--release", "--target-dir", "target/fuzz/build"])
        // Named, so that the flags are not for build scripts, which nothing links libFuzzer to.
        .args(["--target", "x86_64-unknown-linux-gnu"])
        .args(["--message-format", "json-render-diagnostics"])
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"))
        .stderr(Stdio::inherit());
    let output = command.output().context("running cargo")?;
    ensure!(output.status.success(), "the fuzz targets do not compile");
    let messages = String::from_utf8_lossy(&output.stdout);
    cargo::executable(&messages, "libfuzzer")
}

/// How many executions; nothing where one failed.
fn one(program: &Path, name: &str, seconds: u64) -> Result<Option<u64>> {
    let work = paths::target().join("fuzz");
    let (found, failed) = (work.join("corpus").join(name), work.join("failed"));
    fs::create_dir_all(&found).with_context(|| format!("creating {}", found.display()))?;
    fs::create_dir_all(&failed).with_context(|| format!("creating {}", failed.display()))?;
    let seeds = paths::root().join(CORPORA).join(name);
    let mut command = Command::new(program);
    command
        .args([&found, &seeds])
        .arg(format!("-artifact_prefix={}/{name}-", failed.display()))
        .arg(format!("-max_total_time={seconds}"))
        .args(["-max_len=4096", "-rss_limit_mb=1024", "-timeout=10"])
        .args(["-print_final_stats=1", "-verbosity=0"])
        .env("PINBUDDY_FUZZ_TARGET", name);
    let (text, success) = relay::run(&mut command)?;
    if !success {
        return Ok(None);
    }
    let executions = text
        .lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
        .and_then(|number| number.trim().parse().ok());
    Ok(Some(executions.with_context(|| {
        format!("{name}: libFuzzer did not say how often it ran")
    })?))
}
