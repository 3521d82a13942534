//! How long a fork wheel takes to build, with the official wheel and its headers at hand and
//! nothing compiled.

use std::time::Instant;

use anyhow::Result;
use serde_json::json;

use super::figure::Results;
use crate::build_wheel;
use crate::cli;
use crate::report::progress::Step;
use crate::support::paths;
use crate::support::scratch::Scratch;

/// The part.
pub fn run(args: &cli::Bench, step: &Step, results: &mut Results) -> Result<()> {
    let out = Scratch::folder(&paths::target().join("bench/dist"))?;
    let cargo = Scratch::folder(&paths::target().join("bench/cargo"))?;
    let args = cli::BuildWheel::plain(None, &args.python, out.path());
    step.say("what is fetched once");
    build_wheel::build(&args)?;
    step.say("compiling and writing");
    let start = Instant::now();
    let summary = build_wheel::build_in(&args, cargo.path())?;
    results.value(&["build_wheel_s"], start.elapsed().as_secs_f64(), None);
    results.detail("build", json!({"steps": summary.steps}));
    Ok(())
}
