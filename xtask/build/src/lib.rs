//! An official wheel in, a fork wheel out.
//!
//! Knows no command line. The sources of this crate and of its dependencies are inputs of a wheel (`inputs`).
//! Invariant: the result gets its name only after it was read back and verified.

pub mod assemble;
pub mod compile;
pub mod contents;
pub mod current;
pub mod fetch;
pub mod fits;
pub mod inputs;
pub mod library;
pub mod licences;
pub mod plan;
pub mod prepare;
pub mod program;
pub mod release;
pub mod standard;
pub mod summary;
pub mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::plan::Plan;
use assemble::Made;
use compile::Flavour;
use prepare::Prepared;
use program::Compiling;
use summary::{StepTime, Summary};
use xtask_support::hash::{self, Digest};
use xtask_support::progress::Progress;
use xtask_support::scratch::Scratch;
use xtask_support::{disk, lock, paths};
use xtask_wheel::name::WheelName;
use xtask_wheel::platform::Floors;
use xtask_wheel::result::{self, Promise};
use xtask_wheel::verify;
use xtask_wheel::writer;

/// How much larger than the official wheel the fork may be.
const ROOM: u64 = 16 << 20;

/// A request to build.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The release: its version, its minor version, or `latest`. None: the newest, or the wheel's.
    pub torch: Option<String>,
    /// An official wheel to use instead of fetching one.
    pub wheel: Option<PathBuf>,
    /// The target Python.
    pub python: PathBuf,
    /// The output folder.
    pub out: PathBuf,
    /// Cargo's target folder, if not the usual one.
    pub cargo: Option<PathBuf>,
}

/// Builds the wheel, reporting on standard error.
pub fn build(wanted: impl Into<Wanted>) -> Result<Summary> {
    let wanted = wanted.into();
    let usual = paths::target().join(Flavour::Wheel.target());
    build_in(wanted.clone(), wanted.cargo.as_deref().unwrap_or(&usual))
}

/// The same with the caller's target folder for cargo: an empty one compiles everything.
pub fn build_in(wanted: impl Into<Wanted>, cargo: &Path) -> Result<Summary> {
    let wanted = wanted.into();
    let plan = Plan::make(wanted.clone())?;
    disk::require_writable(&plan.out)?;
    let size = plan
        .base
        .as_ref()
        .and_then(|path| fs::metadata(path).ok())
        .map_or(1 << 30, |it| it.len());
    disk::require(&plan.out, size + ROOM, "write the fork wheel")?;
    let _lock = lock::take("build")?;
    let progress = Progress::new(STEPS);
    let (ready, made) = link(&plan, cargo, &progress)?;
    let (out, sha256) = write(&plan, &ready, &made, &progress)?;
    hash::write_beside(&out, &sha256)?;
    Ok(Summary {
        bytes: fs::metadata(&out)?.len(),
        install: summary::install(&wanted.python, &out),
        path: out,
        sha256,
        version: ready.fork_version,
        series: plan.release.series.clone(),
        floors: made.floors,
        tag: made.tag,
        library_bytes: made.library.len() as u64,
        commit: commit(),
        steps: StepTime::list(progress.times()),
    })
}

/// How many steps [`link`] and [`write`] report together.
const STEPS: usize = prepare::STEPS + 5;

/// Everything up to the linked library; the caller holds the lock `build`.
fn link(plan: &Plan, cargo: &Path, progress: &Progress) -> Result<(Prepared, Made)> {
    let program = Compiling::start(paths::root(), cargo)?;
    let ready = prepare::prepare(plan, progress)?;
    let library = progress.step("compile the library", |step| {
        let against = ready.against();
        compile::compile(paths::root(), cargo, &against, Flavour::Wheel, step)
    })?;
    let program = progress.step("compile the program", |_| program.wait())?;
    let work = Scratch::folder(&paths::target().join("wheel/work"))?;
    let made = progress.step("link it in", |_| {
        let libtorch = compile::add_needed(
            &ready.tree.join("torch/lib/libtorch.so"),
            work.path(),
            &ready.tools,
        )?;
        let floors = Floors::read(&library)?
            .merge(&Floors::read(&libtorch)?)
            .merge(&Floors::read(&program)?);
        let tag = floors.platform_tag(&ready.base.name.platform)?;
        Ok(Made {
            library: fs::read(&library)?,
            program: fs::read(&program)?,
            libtorch: fs::read(&libtorch)?,
            floors,
            tag,
        })
    })?;
    Ok((ready, made))
}

/// Writes the fork wheel and reads it back before it gets its name. Returns its path and SHA-256.
fn write(
    plan: &Plan,
    ready: &Prepared,
    made: &Made,
    progress: &Progress,
) -> Result<(PathBuf, String)> {
    let name = WheelName {
        version: ready.fork_version.clone(),
        platform: made.tag.clone(),
        ..ready.base.name.clone()
    };
    let provenance = assemble::provenance(ready, &plan.header, made);
    let out = plan.out.join(name.to_string());
    let unfinished = Scratch::file(&out)?;
    progress.step("write the fork wheel", |step| {
        let mut official = verify::open(&ready.base.path)?;
        let contents = assemble::assemble(&mut official, &name, ready, &provenance, made)?;
        writer::write(&mut official, &contents, unfinished.path(), step)
            .with_context(|| format!("writing {}", out.display()))
    })?;
    let sha256 = progress.step("read it back", |step| {
        let header = (plan.header.as_str(), plan.release.patched_sha256.as_str());
        let promise = Promise {
            name: &name,
            header,
            provenance: &provenance,
            library: compile::LIBRARY,
            asks: "torch/lib/libtorch.so",
            program: Some(program::IN_WHEEL),
        };
        result::verify(unfinished.path(), &promise, step)
            .context("the wheel that was written is invalid, which is a defect of xtask")?;
        let digest = Digest::of_file(unfinished.path())?;
        unfinished.publish(&out)?;
        Ok(digest.hex())
    })?;
    Ok((out, sha256))
}

/// HEAD, if the checkout is a clean git one. For the summary only: the history does not affect the wheel.
pub fn commit() -> Option<String> {
    let shell = Shell::new().ok()?;
    shell.change_dir(paths::root());
    let changes = cmd!(shell, "git status --porcelain")
        .quiet()
        .ignore_stderr()
        .read()
        .ok()?;
    let head = cmd!(shell, "git rev-parse HEAD")
        .quiet()
        .ignore_stderr()
        .read()
        .ok()?;
    changes.is_empty().then_some(head)
}
