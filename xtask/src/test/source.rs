//! The CMake part of a source build: `tests/source-build`, with an official wheel unpacked and the patched headers.

use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::json;

use super::pytest;
use crate::build_wheel::plan::Plan;
use crate::build_wheel::{Wanted, prepare};
use crate::support::lock;
use crate::support::progress::Progress;
use crate::support::tally::Tally;

/// The newest CMake before 4, which the oldest release needs, too.
const TOOLS: [&str; 3] = ["pytest", "cmake>=3.27,<4", "ninja"];

/// With the option, without it, and again without changes.
pub fn cmake(args: &Wanted) -> Result<Tally> {
    let plan = Plan::make(args)?;
    ensure!(
        plan.release.source_series.iter().any(|it| it == "source"),
        "torch {} has another series for its CMake",
        plan.release.version
    );
    let _lock = lock::take("build")?;
    let ready = prepare::prepare(&plan, &Progress::new(prepare::STEPS))?;
    let tools = pytest::packages(&args.options.python, &TOOLS)?;
    let needed = json!({
        "wheel": ready.tree, "overlay": ready.overlay, "cuda": ready.cuda,
        "version": ready.fork_version, "tools": tools,
    });
    let mut command = pytest::command(Command::new(&args.options.python), "tests/source-build");
    command
        .env("PINBUDDY_SOURCE_BUILD", needed.to_string())
        .env("PYTHONPATH", tools);
    pytest::counted(&mut command)
}
