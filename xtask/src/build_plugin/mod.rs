//! `cargo xtask build-plugin`: builds a wheel that works beside an unchanged official torch.
//!
//! It has a library for each requested release, the same as in a fork wheel. The Python package finds and loads it
//! (`_match`, `_plugin`). Invariant: the result gets its name only after it was read back and verified.

mod contents;
mod summary;
#[cfg(test)]
mod tests;

use std::env::consts;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::build_wheel::compile::{self, Flavour, LIBRARY};
use crate::build_wheel::plan::Plan;
use crate::build_wheel::program::{self, Ahead, IN_WHEEL};
use crate::build_wheel::{Wanted, assemble, prepare};
use crate::cli;
use crate::support::hash::Digest;
use crate::support::progress::{Progress, Step, StepTime};
use crate::support::{disk, lock, paths};
use crate::wheel::name::{self, WheelName};
use crate::wheel::platform::Floors;
use crate::wheel::provenance::Provenance;
use crate::wheel::result;
use crate::wheel::writer::{self, Contents};
use summary::Libraries;
pub use summary::Summary;
use xtask_patchkit::release::Versions;

/// Disk space for the wheel: a library takes a megabyte, a debug build ten times that.
const ROOM: u64 = 200 << 20;

/// The library for one torch.
pub struct Library {
    /// libtorch_pinbuddy.so.
    bytes: Vec<u8>,
    /// Its inputs and its target.
    provenance: Provenance,
    /// Its system requirements.
    floors: Floors,
    /// The official wheel's platform tag.
    platform: String,
    /// The CUDA version.
    cuda: String,
}

pub fn run(args: &cli::BuildPlugin) -> Result<()> {
    build(args, Flavour::Wheel)?.print(args.json)
}

/// Builds the wheel with libraries of a flavour; progress goes to standard error.
pub fn build(args: &cli::BuildPlugin, flavour: Flavour) -> Result<Summary> {
    let wanted = wanted(args)?;
    disk::require_writable(&args.options.out)?;
    disk::require(&args.options.out, ROOM, "write the plug-in")?;
    let _lock = lock::take("build")?;
    let wheels = paths::target().join(Flavour::Wheel.target());
    let _ahead = Ahead::start(&wheels)?;
    let mut libraries: Vec<Library> = Vec::new();
    let mut steps = Vec::new();
    for build in &wanted {
        let plan = Plan::make(build)?;
        eprintln!("for torch {}", plan.release.version);
        let progress = Progress::new(prepare::STEPS + 1);
        let library = library(&plan, flavour, &progress)?;
        let torch = &library.provenance.torch_version;
        steps.extend(
            progress.times().into_iter().map(|it| StepTime { step: format!("torch {torch}: {}", it.step), ..it }),
        );
        // A release may be requested twice, by its version and by its wheel.
        if !libraries.iter().any(|it| it.provenance.torch_version == *torch) {
            libraries.push(library);
        }
    }
    let progress = Progress::new(3);
    let program = progress.step("compile the program", |_| program::compile(&wheels))?;
    let program = fs::read(&program).with_context(|| format!("reading {}", program.display()))?;
    let (python, out) = (&args.options.python, &args.options.out);
    let published = write(&libraries, &program, out, &progress)?;
    steps.extend(progress.times());
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Summary::new(published, version, Libraries::of(&libraries), steps, python)
}

/// The requests.
fn wanted(args: &cli::BuildPlugin) -> Result<Vec<Wanted>> {
    let plain = |torch: Option<&str>| Wanted {
        torch: torch.map(str::to_owned),
        options: args.options.clone(),
        ..Wanted::default()
    };
    let mut wanted = Vec::new();
    if args.all {
        let versions = Versions::read(paths::root())?;
        let all = versions.sorted();
        wanted.extend(all.iter().map(|it| plain(Some(&it.version))));
    }
    wanted.extend(args.torch.iter().map(|it| plain(Some(it))));
    for wheel in &args.wheel {
        let file = wheel.file_name().unwrap_or_default().to_string_lossy();
        let name = WheelName::parse(&file)?;
        wanted.push(Wanted { wheel: Some(wheel.clone()), ..plain(Some(name.public_version())) });
    }
    if wanted.is_empty() {
        wanted.push(plain(None));
    }
    Ok(wanted)
}

/// Everything up to the library; the caller holds the lock `build`.
fn library(plan: &Plan, flavour: Flavour, progress: &Progress) -> Result<Library> {
    let ready = prepare::prepare(plan, progress)?;
    let target = paths::target().join(flavour.target());
    let path = progress.step("compile the library", |step| compile::compile(&target, &ready, flavour, step))?;
    let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let floors = ready.require(&[(LIBRARY, &bytes)])?;
    Ok(Library {
        provenance: ready.provenance(&plan.header, &bytes, &floors),
        platform: ready.base.name.platform.clone(),
        cuda: ready.facts.cuda.clone(),
        bytes,
        floors,
    })
}

/// Writes the wheel and reads it back before it gets its name. Returns its path and SHA-256.
fn write(libraries: &[Library], program: &[u8], out: &Path, progress: &Progress) -> Result<(PathBuf, String)> {
    let name = WheelName {
        name: "pinbuddy".into(),
        version: version(libraries, program)?,
        python: "py3".into(),
        abi: "none".into(),
        platform: platform(libraries)?,
    };
    let needs = Floors::of(program)?;
    needs.require(IN_WHEEL, &name.platform, &Floors::default())?;
    assemble::publish(
        out.join(name.to_string()),
        "write the plug-in",
        progress,
        |file, step| {
            let contents = contents::contents(&name, libraries, program)?;
            writer::write(None, &contents, file, step)?;
            Ok(contents)
        },
        |file, contents, step| verify(file, &name, (libraries.len(), contents), step),
    )
}

/// Verifies every byte against RECORD and `contents`, and what the loader relies on.
fn verify(file: &Path, name: &WheelName, (count, contents): (usize, &Contents), step: &Step) -> Result<()> {
    let mut wheel = result::open(file, name, contents)?;
    let files = contents.files.keys();
    let libraries: Vec<&String> = files.filter(|it| it.ends_with(LIBRARY)).collect();
    ensure!(
        libraries.len() == count && contents.files.contains_key(IN_WHEEL),
        "{count} libraries and {IN_WHEEL} belong into the wheel, not {libraries:?}"
    );
    for path in libraries {
        result::check_soname(&mut wheel, path, LIBRARY)?;
    }
    wheel.verify_all(step, |_| Ok(None))
}

/// `0.1.0+torch2.11.0.2.15.0.h1a2b3c4d`: our version, the releases, and a digest of all that the wheel is made of. pip
/// does not install a wheel of the version that is installed, so a wheel that was built anew needs another one. The
/// digest begins with a letter, since pip drops the zeros before a number. Digests have no order, so a number of the build
/// gives one: `0.1.0+7.torch2.15.0.h1a2b3c4d`. It stands before the releases, or a plug-in for one more release could count
/// as older than one of its releases' earlier builds: `2.15.0.2.16.0.8` as older than `2.15.0.7`.
fn version(libraries: &[Library], program: &[u8]) -> Result<String> {
    let known: Vec<&Provenance> = libraries.iter().map(|it| &it.provenance).collect();
    let inputs = serde_json::to_vec(&(known, Digest::of(program).hex()))?;
    let releases: Vec<&str> = libraries.iter().filter_map(|it| it.provenance.torch_version.split('+').next()).collect();
    let build = libraries.first().and_then(|it| it.provenance.inputs.build);
    Ok(format!(
        "{}+{}torch{}.h{}",
        env!("CARGO_PKG_VERSION"),
        build.map_or(String::new(), |it| format!("{it}.")),
        releases.join("."),
        &Digest::of(&inputs).hex()[..8]
    ))
}

/// The newest platform tag of the official wheels.
fn platform(libraries: &[Library]) -> Result<String> {
    let glibc = |tag: &&String| {
        let first = tag.split('.').next().unwrap_or_default();
        name::glibc(first.strip_suffix(&format!("_{}", consts::ARCH))?)
    };
    let tags = libraries.iter().map(|it| &it.platform);
    let newest = tags.max_by_key(glibc).context("a plug-in for no torch at all")?;
    Ok(newest.clone())
}
