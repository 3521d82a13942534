//! Takes one release through all stages, until one fails.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use super::table::{Outcome, Row};
use crate::build_wheel::compile::Flavour;
use crate::build_wheel::plan::Plan;
use crate::build_wheel::{self, Reached, fetch};
use crate::cli;
use crate::python::environment;
use crate::python::tools;
use crate::support::progress::Progress;
use crate::support::refusal::refuse;
use crate::support::scratch::Scratch;
use crate::support::{lock, paths, relay};
use crate::venv;

/// The row of one release; an error is also printed at once.
pub fn release(version: &str, args: &cli::Matrix) -> Row {
    let mut row = Row::new(version);
    let start = Instant::now();
    if let Err(error) = stages(&mut row, args) {
        crate::support::failure::say(&error);
        let failed = row.stages.iter_mut().find(|it| **it == Outcome::NotRun);
        if let Some(stage) = failed {
            let line = error.to_string();
            *stage = Outcome::Failed(line.lines().next().unwrap_or_default().to_owned());
        }
    }
    row.seconds = start.elapsed().as_secs_f64();
    row
}

fn stages(row: &mut Row, args: &cli::Matrix) -> Result<()> {
    let folder = paths::target().join("matrix");
    let out = Scratch::folder(&folder.join("dist"))?;
    let plan = Plan::make(&cli::BuildWheel::plain(
        Some(&row.torch),
        &args.python,
        out.path(),
    ))?;
    let _gone = Fetched::new(&plan);
    let progress = Progress::new(if args.quick {
        build_wheel::LINK_STEPS
    } else {
        build_wheel::STEPS
    });
    let cargo = paths::target().join(Flavour::Wheel.target());
    let built = {
        let _lock = lock::take("build")?;
        let mut reached = |stage| row.stages[column(stage)] = Outcome::Ok;
        build_wheel::link(&plan, &cargo, &progress, &mut reached).and_then(|(ready, made)| {
            let wheel = (!args.quick).then(|| build_wheel::write(&plan, &ready, &made, &progress));
            Ok((ready.facts.cuda.clone(), wheel.transpose()?.map(|it| it.0)))
        })
    };
    let (cuda, wheel) = built?;
    row.cuda = Some(cuda);
    let Some(wheel) = wheel else { return Ok(()) };
    let venv = folder.join("environment");
    let environment = Environment::make(&plan, &wheel, &venv)?;
    environment.import()?;
    row.stages[4] = Outcome::Ok;
    environment.smoke()?;
    row.stages[5] = Outcome::Ok;
    Ok(())
}

/// The column of a stage.
fn column(reached: Reached) -> usize {
    match reached {
        Reached::Verified => 0,
        Reached::Patched => 1,
        Reached::Compiled => 2,
        Reached::Linked => 3,
    }
}

/// Removes the official wheel from the cache on drop, if it was not there before.
struct Fetched<'a>(Option<&'a Plan>);

impl<'a> Fetched<'a> {
    fn new(plan: &'a Plan) -> Self {
        Self(plan.base.is_none().then_some(plan))
    }
}

impl Drop for Fetched<'_> {
    fn drop(&mut self) {
        if let Some(plan) = self.0 {
            fetch::forget(&plan.cache, &plan.release, &plan.python);
        }
    }
}

/// An environment with the fork wheel, removed on drop.
struct Environment<'a> {
    folder: &'a Path,
}

impl<'a> Environment<'a> {
    fn make(plan: &Plan, wheel: &Path, folder: &'a Path) -> Result<Self> {
        let tools = tools::ensure(&plan.python)?;
        let environment = Self { folder };
        Progress::new(1).step("make an environment with it", |step| {
            venv::fresh(&plan.python, &tools, folder, wheel, step)
        })?;
        Ok(environment)
    }

    /// Without the simulator, as on a machine with no GPU.
    fn import(&self) -> Result<()> {
        let mut command = Command::new(self.folder.join("bin/python"));
        command.args(["-c", "import torch, pinbuddy; print(torch.__version__)"]);
        succeed(&mut command, "import torch, pinbuddy")
    }

    fn smoke(&self) -> Result<()> {
        let mut command = crate::sim::build()?.command(self.folder.join("bin/python"), 1)?;
        environment::clear_settings(&mut command);
        command.arg(paths::root().join("tests/python/smoke.py"));
        succeed(&mut command, "tests/python/smoke.py")
    }
}

impl Drop for Environment<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.folder);
    }
}

fn succeed(command: &mut Command, what: &str) -> Result<()> {
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let (text, success) = relay::run(command).with_context(|| format!("running {what}"))?;
    if success {
        return Ok(());
    }
    Err(refuse(format!("{what} failed"))
        .found(text.trim_end())
        .into())
}
