//! The time of `build-wheel` with the official wheel and its headers cached and nothing compiled.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use xtask_support::paths;
use xtask_support::progress::Step;
use xtask_support::scratch::Scratch;

use super::figure::Results;
use crate::cli;

pub fn run(args: &cli::Bench, step: &Step, results: &mut Results) -> Result<()> {
    let Some(xtask) = &args.handed.xtask else {
        results.skip("build", "nobody handed over what builds wheels");
        return Ok(());
    };
    let out = Scratch::folder(&paths::target().join("bench/dist"))?;
    let cargo = Scratch::folder(&paths::target().join("bench/cargo"))?;
    let build = |more: &[&Path]| {
        let mut command = Command::new(xtask);
        command.args(["build-wheel", "--json", "--python"]);
        command.arg(&args.python).arg("--out").arg(out.path());
        summary(command.args(more))
    };
    step.say("what is fetched once");
    build(&[])?;
    step.say("compiling and writing");
    let start = Instant::now();
    let summary = build(&["--cargo".as_ref(), cargo.path()])?;
    results.value(&["build_wheel_s"], start.elapsed().as_secs_f64(), None);
    results.detail("build", json!({"steps": summary["steps"]}));
    Ok(())
}

/// The summary of a build. Its progress is shown.
fn summary(command: &mut Command) -> Result<Value> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("running {command:?}"))?;
    anyhow::ensure!(output.status.success(), "{command:?} failed");
    serde_json::from_slice(&output.stdout).context("reading the summary of build-wheel")
}
