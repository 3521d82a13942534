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
pub mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::build_wheel::fetch::Base;
use crate::build_wheel::plan::Plan;
use crate::cli;
use crate::patch::apply::{self, Headers};
use crate::python::tools;
use crate::python::tools::Tools;
use crate::report::progress::{Progress, Step};
use crate::report::summary::Summary;
use crate::support::hash::Digest;
use crate::support::scratch::Scratch;
use crate::support::{disk, lock, paths};
use crate::wheel::metadata::TorchVersion;
use crate::wheel::name::WheelName;
use crate::wheel::platform::Floors;
use crate::wheel::result::{self, Promise};
use crate::wheel::verify::{self, Expected};
use crate::wheel::writer;
use assemble::Made;
use compile::Against;

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
    build_in(args, &paths::target().join("wheel/cargo"))
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
    let progress = Progress::new(9);
    let (compilers, tools) = progress.step("check the compilers and tools", |_| {
        Ok((compile::compilers()?, tools::ensure(&plan.python)?))
    })?;
    let base = progress.step("get the official wheel", |step| base(&plan, &tools, step))?;
    let expected = Expected {
        name: &base.name,
        release: &plan.release,
        header: &plan.header,
        cache: &plan.cache,
    };
    let (tree, facts) = progress.step("verify it", |step| {
        tree::ensure(&plan.cache, &base, &expected, step)
    })?;
    let cuda = plan.versions.cuda(&facts.cuda)?;
    let cuda_include = progress.step("get CUDA's headers", |step| {
        tree::ensure_cuda(&plan.cache, cuda, &tools, step)
    })?;
    let headers = progress.step("apply the series", |_| patched(&plan, &tree))?;

    let inputs = inputs::gather(
        paths::root(),
        &base,
        &plan.release,
        &plan.series,
        cuda,
        &compilers,
        &tools,
    )?;
    let fork = TorchVersion {
        version: facts.torch_version.clone(),
        cuda: None,
        hip: None,
    }
    .fork(&inputs.pinbuddy);
    let work = Work::new()?;
    let library = progress.step("compile the library", |step| {
        work.overlay(&headers)?;
        let against = Against {
            overlay: &work.overlay,
            tree: &tree,
            cuda: &cuda_include,
            fork_version: &fork,
        };
        compile::compile(paths::root(), cargo, &against, step)
    })?;
    let made = progress.step("link it in", |_| {
        let libtorch = compile::add_needed(
            &tree.join("torch/lib/libtorch.so"),
            work.scratch.path(),
            &tools,
        )?;
        let floors = Floors::read(&library)?.merge(&Floors::read(&libtorch)?);
        let tag = floors.platform_tag(&base.name.platform)?;
        Ok(Made {
            library: fs::read(&library)?,
            libtorch: fs::read(&libtorch)?,
            floors,
            tag,
        })
    })?;
    let name = WheelName {
        version: fork.clone(),
        platform: made.tag.clone(),
        ..base.name.clone()
    };
    let provenance = assemble::provenance(&fork, &facts, inputs, &headers[&plan.header], &made);
    let out = plan.out.join(name.to_string());
    let unfinished = Scratch::file(&out)?;
    progress.step("write the fork wheel", |step| {
        let mut official = verify::open(&base.path)?;
        let contents =
            assemble::assemble(&mut official, &name, &base, &headers, &provenance, &made)?;
        writer::write(&mut official, &contents, unfinished.path(), step)
            .with_context(|| format!("writing {}", out.display()))
    })?;
    let sha256 = progress.step("read it back", |step| {
        let header = (plan.header.as_str(), plan.release.patched_sha256.as_str());
        let promise = Promise {
            name: &name,
            header,
            provenance: &provenance,
        };
        result::verify(unfinished.path(), &promise, step)
            .context("the wheel that was written is not right; this is an error of xtask")?;
        let digest = Digest::of_file(unfinished.path())?;
        unfinished.publish(&out)?;
        Ok(digest.hex())
    })?;
    let mut summary = Summary {
        bytes: fs::metadata(&out)?.len(),
        path: out,
        sha256,
        version: fork,
        series: plan.release.series.clone(),
        floors: made.floors,
        tag: made.tag,
        library_bytes: made.library.len() as u64,
        commit: commit(),
        steps: Vec::new(),
    };
    summary.set_times(progress.times());
    Ok(summary)
}

/// Where the compiler works. The overlay's place never changes, or cargo would compile anew.
struct Work {
    scratch: Scratch,
    overlay: PathBuf,
}

impl Work {
    fn new() -> Result<Self> {
        let folder = paths::target().join("wheel");
        let scratch = Scratch::folder(&folder.join("work"))?;
        Ok(Self {
            scratch,
            overlay: folder.join("overlay"),
        })
    }

    /// Writes the patched headers, touching only what changed.
    fn overlay(&self, headers: &Headers) -> Result<()> {
        let same = headers.iter().all(|(name, bytes)| {
            fs::read(self.overlay.join(name)).is_ok_and(|present| present == *bytes)
        });
        let mut present = std::collections::BTreeMap::new();
        inputs::collect(&self.overlay, "torch", &mut present)?;
        if same && present.len() == headers.len() {
            return Ok(());
        }
        let scratch = Scratch::folder(&self.overlay)?;
        for (name, bytes) in headers {
            let file = scratch.path().join(name);
            fs::create_dir_all(file.parent().unwrap_or(scratch.path()))?;
            fs::write(&file, bytes).with_context(|| format!("writing {}", file.display()))?;
        }
        scratch.publish(&self.overlay)
    }
}

/// The official wheel, wherever it comes from.
pub fn base(plan: &Plan, tools: &Tools, step: &Step) -> Result<Base> {
    match &plan.base {
        Some(path) if plan.given => {
            let (path, name) = fetch::at_hand(path, &plan.python)?;
            step.say("hashing");
            let sha256 = Digest::of_file(&path)?.hex();
            Ok(Base { path, name, sha256 })
        }
        _ => fetch::official(&plan.cache, &plan.release, &plan.python, tools, step),
    }
}

fn patched(plan: &Plan, tree: &Path) -> Result<Headers> {
    let headers = apply::apply(&plan.series, tree)?;
    apply::check_result(
        &headers,
        &plan.header,
        &plan.release.patched_sha256,
        &plan.release.version,
    )?;
    Ok(headers)
}

/// HEAD, where the checkout is a clean git one. For the summary only: the same sources give the
/// same wheel, whatever their history.
fn commit() -> Option<String> {
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
