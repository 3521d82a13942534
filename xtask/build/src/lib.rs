//! An official wheel in, a fork wheel out.
//!
//! The sources of this crate and of its dependencies are inputs of a wheel (`inputs`).

pub mod assemble;
pub mod compile;
pub mod contents;
pub mod current;
pub mod defaults;
pub mod fetch;
pub mod fits;
pub mod inputs;
pub mod library;
pub mod licences;
pub mod links;
mod old_glibc;
pub mod plan;
pub mod prepare;
pub mod program;
pub mod release;
pub mod standard;
pub mod summary;
pub mod tree;
mod wanted;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Result;
use xshell::{Cmd, Shell, cmd};

use crate::plan::Plan;
use assemble::Fork;
use compile::Flavour;
use prepare::Prepared;
use program::Ahead;
use summary::Summary;
pub use wanted::{Options, Wanted};
use xtask_support::hash::Digest;
use xtask_support::progress::Progress;
use xtask_support::scratch::Scratch;
use xtask_support::{disk, lock, paths};
use xtask_wheel::name::WheelName;
use xtask_wheel::writer::NewFile;

/// How much larger than the official wheel the fork may be.
const ROOM: u64 = 16 << 20;

/// Builds the wheel, reporting on standard error.
pub fn build(wanted: &Wanted) -> Result<Summary> {
    let usual = paths::target().join(Flavour::Wheel.target());
    let cargo = wanted.cargo.as_deref().unwrap_or(&usual);
    let plan = Plan::make(wanted)?;
    disk::require_writable(&plan.out)?;
    let size = plan.base.as_ref().and_then(|path| fs::metadata(path).ok()).map_or(1 << 30, |it| it.len());
    disk::require(&plan.out, size + ROOM, "write the fork wheel")?;
    let _lock = lock::take("build")?;
    let progress = Progress::new(STEPS);
    let _ahead = Ahead::start(cargo)?;
    let ready = prepare::prepare(&plan, &progress)?;
    let library = progress.step("compile the library", |step| compile::compile(cargo, &ready, Flavour::Wheel, step))?;
    let program = progress.step("compile the program", |_| program::compile(cargo))?;
    let fork = progress.step("link it in", |_| link(&plan, &ready, &library, &program))?;
    fork.write(&plan.out, &wanted.options.python, &progress)
}

/// How many steps a build reports.
const STEPS: usize = prepare::STEPS + 3 + assemble::STEPS;

/// libtorch.so with our library in its NEEDED list, and all else that makes the fork.
fn link<'a>(plan: &'a Plan, ready: &'a Prepared, library: &Path, program: &Path) -> Result<Fork<'a>> {
    const ASKS: &str = "torch/lib/libtorch.so";
    let work = Scratch::folder(&paths::target().join("wheel/work"))?;
    let libtorch = compile::add_needed(&ready.tree.join(ASKS), work.path(), &ready.tools)?;
    let headers = ready.headers.iter();
    let mut made: BTreeMap<_, _> = headers.map(|(path, bytes)| (path.clone(), NewFile::text(bytes.clone()))).collect();
    let ours = format!("torch/lib/{}", compile::LIBRARY);
    let files = [(&*ours, fs::read(library)?), (program::IN_WHEEL, fs::read(program)?), (ASKS, fs::read(&libtorch)?)];
    let floors = ready.require(&files.each_ref().map(|(path, bytes)| (*path, &bytes[..])))?;
    let compiled = files.map(|(path, bytes)| (path.to_owned(), NewFile::library(bytes)));
    made.extend(compiled);
    made.extend(defaults::beside(&ours, &plan.defaults));
    let mut provenance = ready.provenance(&plan.header, &made[&ours].bytes, &floors);
    provenance.program_sha256 = Some(Digest::of(&made[program::IN_WHEEL].bytes).hex());
    Ok(Fork {
        base: &ready.base.path,
        name: WheelName { version: ready.version(), ..ready.base.name.clone() },
        library_bytes: made[&ours].bytes.len() as u64,
        made,
        provenance,
        header: (&plan.header, &plan.release.patched_sha256),
        asks: ASKS,
        floors,
    })
}

/// HEAD, if the checkout is a clean git one. For the summary only: the history does not affect the wheel.
pub fn commit() -> Option<String> {
    let shell = Shell::new().ok()?;
    shell.change_dir(paths::root());
    let read = |command: Cmd<'_>| command.quiet().ignore_stderr().read().ok();
    let changes = read(cmd!(shell, "git status --porcelain"))?;
    let head = read(cmd!(shell, "git rev-parse HEAD"))?;
    changes.is_empty().then_some(head)
}
