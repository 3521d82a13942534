//! `cargo xtask build-wheel --source`: builds a fork wheel from a PyTorch source tree.
//!
//! PyTorch's own build makes the wheel; its patched CMake builds our library and links it into libtorch_cuda.
//! Invariants: the tree is only read, except with `--keep`; the same command resumes an interrupted build; the
//! result gets its name only after it was read back and verified.

mod compile;
mod entry;
mod finish;
mod layout;
mod plan;
mod prerequisites;
mod series;
#[cfg(test)]
mod tests;
mod toolkit;
mod variables;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::build_wheel::summary::{self, StepTime, Summary};
use crate::build_wheel::{commit, inputs};
use crate::cli;
use crate::support::hash::Digest;
use crate::support::progress::{Progress, Step};
use crate::support::{lock, paths};
use plan::{Asked, Plan};
use prerequisites::Seen;
use xtask_patchkit::release::Versions;
use xtask_patchkit::replace;

const STEPS: usize = 6;

pub fn run(args: &cli::BuildWheel, source: &Path) -> Result<()> {
    let root = paths::root();
    let asked = Asked {
        source,
        python: &args.python,
        out: &args.out,
        building: &args.building,
        environment: env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect(),
    };
    let plan = Plan::make(root, &Versions::read(root)?, asked)?;
    // Find out first whether the series apply, before the long work.
    series::patched(&plan)?;
    let findings = Seen::look(&plan).findings();
    if args.dry_run {
        print!("{}", plan.describe(&findings));
        return Ok(());
    }
    let _lock = lock::take("source")?;
    let progress = Progress::new(STEPS);
    progress.step("check what PyTorch's build needs", |_| {
        prerequisites::require(&findings)?;
        finish::check_out(&plan)
    })?;
    let summary = make(&plan, &progress)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&summary)?);
    } else {
        print!("\n{summary}");
    }
    Ok(())
}

/// Everything after the prerequisites.
fn make(plan: &Plan, progress: &Progress) -> Result<Summary> {
    fs::create_dir_all(&plan.work).with_context(|| format!("creating {}", plan.work.display()))?;
    let changed = progress.step("lay out the tree, with the series", |step| {
        lay_out(plan, step)
    })?;
    progress.step("make the build's environment", |step| {
        compile::ensure_environment(plan, step)
    })?;
    let built = progress.step("run PyTorch's own build", |step| {
        build_once(plan, changed, step)
    })?;
    let written = progress.step("write the fork wheel", |step| {
        finish::write(plan, &built, step)
    })?;
    let (made, sha256) = progress.step("read it back", |step| {
        finish::read_back(plan, written, step)
    })?;
    if !plan.keep {
        fs::remove_dir_all(&plan.work)
            .with_context(|| format!("removing {}", paths::show(&plan.work)))?;
    }
    Ok(Summary {
        bytes: fs::metadata(&made.path)?.len(),
        install: summary::install(&plan.python.executable, &made.path),
        path: made.path,
        sha256,
        version: plan.version.clone(),
        series: plan.release.series.clone(),
        floors: made.floors,
        tag: made.name.platform,
        library_bytes: made.library_bytes,
        commit: commit(),
        steps: StepTime::list(progress.times()),
    })
}

/// Applies the series to the copy, or to the tree itself; returns whether anything changed.
fn lay_out(plan: &Plan, step: &Step) -> Result<bool> {
    let (before, after) = series::patched(plan)?;
    if plan.keep {
        let changed = replace::replace(&plan.tree.root, &before, &after)?;
        return Ok(!changed.is_empty());
    }
    let list = plan.work.join("files.json");
    let known: BTreeSet<String> = fs::read(&list)
        .ok()
        .and_then(|it| serde_json::from_slice(&it).ok())
        .unwrap_or_default();
    let (files, changed) =
        layout::bring_up_to_date(&plan.tree.root, &plan.build_tree(), &after, &known, step)?;
    fs::write(&list, serde_json::to_vec(&files)?)?;
    Ok(changed > 0)
}

/// The inputs of PyTorch's build when it last made a wheel.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Built {
    variables: variables::Environment,
    source_sha256: String,
    wheel: PathBuf,
    sha256: String,
}

/// Runs PyTorch's build unless its wheel exists and nothing has changed. With `--keep` changes are unknown, so it
/// always runs and decides by itself.
fn build_once(plan: &Plan, changed: bool, step: &Step) -> Result<PathBuf> {
    let note = plan.work.join("built.json");
    let source_sha256 = inputs::sources(paths::root())?;
    let last: Option<Built> = fs::read(&note)
        .ok()
        .and_then(|it| serde_json::from_slice(&it).ok());
    if let Some(last) = last
        && !changed
        && !plan.keep
        && last.variables == plan.variables.set
        && last.source_sha256 == source_sha256
        && Digest::of_file(&last.wheel).is_ok_and(|it| it.hex() == last.sha256)
    {
        step.say("built before");
        return Ok(last.wheel);
    }
    let _ = fs::remove_file(&note);
    let wheel = compile::build(plan, step)?;
    let built = Built {
        variables: plan.variables.set.clone(),
        source_sha256,
        sha256: Digest::of_file(&wheel)?.hex(),
        wheel,
    };
    fs::write(&note, serde_json::to_vec(&built)?)?;
    Ok(built.wheel)
}
