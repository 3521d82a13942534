//! Folders of tests outside `tests/python`, each with a conftest.py that says what it needs.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::json;

use super::{Ready, pytest};
use crate::bench;
use crate::build_wheel::plan::Plan;
use crate::build_wheel::{Wanted, prepare};
use crate::programs;
use crate::support::lock;
use crate::support::progress::Progress;
use crate::support::tally::Tally;

/// What drives the Chromium of tests/page/conftest.py, and knows how colours are seen.
const BROWSER: [&str; 2] = ["playwright==1.65.2", "coloraide==8.13.1"];

/// The report's page in a real browser, which conftest.py fetches: opens pages, moves their sliders, and looks for complaints.
/// Skipped where there is no npm. `source` is a tree of PyTorch's, with its memory_viz; without it Debian's package has one.
pub fn in_a_browser(python: &Path, source: Option<&Path>) -> Result<Tally> {
    let mut command = pytest::command(Command::new(python), "tests/page");
    let packages = pytest::packages(python, &[pytest::TWO, BROWSER].concat())?;
    command.env("PINBUDDY_TOOLS", programs::tools()?).env("PYTHONPATH", packages);
    if let Some(source) = source {
        command.arg("--source").arg(std::path::absolute(source)?);
    }
    pytest::counted(pytest::by_file(&mut command))
}

/// Tries ci/gpu/run.sh in the simulator, with two environments instead of a pack: `tests/gpu/trial.py`.
pub fn gpu_trial(ready: &Ready<'_>) -> Result<Tally> {
    let stock = &ready.stock;
    let mut command = pytest::command(Command::new(ready.fork.python()), "tests/gpu");
    command
        .arg("trial.py")
        .env("PINBUDDY_XTASK", programs::own()?)
        .env("PINBUDDY_STOCK_PYTHON", stock.python())
        .env("PINBUDDY_HARNESS", bench::harness(stock)?)
        .env("PINBUDDY_QUESTIONS", programs::questions()?);
    pytest::counted(&mut command)
}

/// The newest CMake before 4, which the oldest release needs, too.
const TOOLS: [&str; 3] = ["pytest", "cmake>=3.27,<4", "ninja"];

/// The CMake part of a source build, with an official wheel unpacked and the patched headers: with the option, without it, and
/// again without changes.
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
    command.env("PINBUDDY_SOURCE_BUILD", needed.to_string()).env("PYTHONPATH", tools);
    pytest::counted(&mut command)
}
