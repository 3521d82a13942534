//! The library alone, built to check itself: what `cargo xtask test` runs in place of the wheel's.

use std::path::PathBuf;

use anyhow::Result;

use crate::build_wheel::compile::{self, Flavour};
use crate::build_wheel::plan::Plan;
use crate::build_wheel::prepare;
use crate::cli;
use crate::report::progress::Progress;
use crate::support::{lock, paths};

/// Compiles it, in a target folder of its own, and returns its path.
pub fn library(args: &cli::BuildWheel) -> Result<PathBuf> {
    let plan = Plan::make(args)?;
    let _lock = lock::take("build")?;
    let progress = Progress::new(prepare::STEPS + 1);
    let prepared = prepare::prepare(&plan, &progress)?;
    let target = paths::target().join("wheel/cargo-debug");
    progress.step("compile the library for debugging", |step| {
        compile::compile(
            paths::root(),
            &target,
            &prepared.against(),
            Flavour::Debug,
            step,
        )
    })
}
