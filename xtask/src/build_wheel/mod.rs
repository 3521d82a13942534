//! `cargo xtask build-wheel`: an official wheel in, a fork wheel out.
//!
//! Invariant: the result has its name only once it has been read back and found right.

pub mod assemble;
pub mod compile;
pub mod contents;
pub mod current;
pub mod fetch;
pub mod inputs;
pub mod plan;
pub mod prepare;
pub mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::build_wheel::plan::Plan;
use crate::cli;
use crate::report::progress::Progress;
use crate::report::summary::{self, StepTime, Summary};
use crate::support::hash::Digest;
use crate::support::scratch::Scratch;
use crate::support::{disk, lock, paths};
use crate::wheel::name::WheelName;
use crate::wheel::platform::Floors;
use crate::wheel::result::{self, Promise};
use crate::wheel::verify;
use crate::wheel::writer;
use assemble::Made;
use compile::Flavour;
use prepare::Prepared;

/// How much larger than the official wheel the fork may be.
const ROOM: u64 = 16 << 20;

/// The command.
pub fn run(args: &cli::BuildWheel) -> Result<()> {
    if args.dry_run {
        print!("{}", Plan::make(args)?.describe());
        return Ok(());
    }
    let summary = build(args)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&summary)?);
    } else {
        print!("\n{summary}");
    }
    Ok(())
}

/// Builds the wheel, reporting on standard error.
pub fn build(args: &cli::BuildWheel) -> Result<Summary> {
    build_in(args, &paths::target().join(Flavour::Wheel.target()))
}

/// The same, with cargo working in a folder of the caller's: an empty one compiles everything.
pub fn build_in(args: &cli::BuildWheel, cargo: &Path) -> Result<Summary> {
    let plan = Plan::make(args)?;
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
    Ok(Summary {
        bytes: fs::metadata(&out)?.len(),
        install: summary::install(&args.python, &out),
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

/// How many steps [`link`] reports.
pub const LINK_STEPS: usize = prepare::STEPS + 2;
/// How many steps [`link`] and [`write`] report together.
pub const STEPS: usize = LINK_STEPS + 2;

/// Everything up to the library in its place; the caller holds the lock `build`.
pub fn link(plan: &Plan, cargo: &Path, progress: &Progress) -> Result<(Prepared, Made)> {
    let ready = prepare::prepare(plan, progress)?;
    let library = progress.step("compile the library", |step| {
        let against = ready.against();
        compile::compile(paths::root(), cargo, &against, Flavour::Wheel, step)
    })?;
    let work = Scratch::folder(&paths::target().join("wheel/work"))?;
    let made = progress.step("link it in", |_| {
        let libtorch = compile::add_needed(
            &ready.tree.join("torch/lib/libtorch.so"),
            work.path(),
            &ready.tools,
        )?;
        let floors = Floors::read(&library)?.merge(&Floors::read(&libtorch)?);
        let tag = floors.platform_tag(&ready.base.name.platform)?;
        Ok(Made {
            library: fs::read(&library)?,
            libtorch: fs::read(&libtorch)?,
            floors,
            tag,
        })
    })?;
    Ok((ready, made))
}

/// The fork wheel with it, read back before it has its name: its path and SHA-256.
pub fn write(
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
    let provenance = assemble::provenance(ready, &plan.header, &made.library, &made.floors);
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
            asks: "torch/lib/libtorch.so",
        };
        result::verify(unfinished.path(), &promise, step)
            .context("the wheel that was written is not right; this is an error of xtask")?;
        let digest = Digest::of_file(unfinished.path())?;
        unfinished.publish(&out)?;
        Ok(digest.hex())
    })?;
    Ok((out, sha256))
}

/// HEAD, where the checkout is a clean git one. For the summary only: the same sources give the
/// same wheel, whatever their history.
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
