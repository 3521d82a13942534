//! The benchmark's harness: compiled once against the official wheel, it runs with either libtorch.
//!
//! Invariant: the program exists only with a stamp of its sources and its wheel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::python::environment::Environment;
use crate::support::hash::Digest;
use crate::support::paths;
use crate::support::progress::Step;
use crate::support::refusal::refuse;
use crate::support::scratch::Scratch;

/// Compiles it unless it is current; returns its path.
pub fn ensure(stock: &Environment, step: &Step) -> Result<PathBuf> {
    let (sources, stamp) = sources(stock.torch())?;
    let program = paths::target().join("bench/harness");
    let stamped = program.with_extension("stamp");
    if program.exists() && fs::read_to_string(&stamped).is_ok_and(|it| it == stamp) {
        return Ok(program);
    }
    let _ = fs::remove_file(&stamped);
    step.say("compiling the harness");
    link(&sources, stock.torch(), &program)?;
    fs::write(&stamped, stamp)?;
    Ok(program)
}

/// Compiles it to any path. It contains no path of libtorch.
pub fn build(stock: &Environment, program: &Path) -> Result<()> {
    link(&sources(stock.torch())?.0, stock.torch(), program)
}

fn link(sources: &[PathBuf], torch: &Path, program: &Path) -> Result<()> {
    let work = Scratch::folder(&paths::target().join("bench/work"))?;
    let objects = compile(sources, torch, work.path())?;
    let unfinished = Scratch::file(program)?;
    run(Command::new("g++")
        .args(&objects)
        .arg("-o")
        .arg(unfinished.path())
        .arg(format!("-L{}", torch.join("lib").display()))
        // No symbol refers to libtorch_cuda.so, but CUDA needs it to be loaded.
        .args([
            "-Wl,--no-as-needed",
            "-ltorch",
            "-ltorch_cuda",
            "-ltorch_cpu",
            "-lc10",
        ])
        .args(["-Wl,--allow-shlib-undefined", "-pthread", "-ldl"]))?;
    unfinished.publish(program)
}

/// The harness's sources, and a stamp of them and the wheel.
fn sources(torch: &Path) -> Result<(Vec<PathBuf>, String)> {
    let folder = paths::root().join("tests/bench");
    let mut sources = Vec::new();
    let mut stamp = format!("{}\n", torch.display());
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .with_context(|| format!("listing {}", folder.display()))?
        .map(|entry| entry.map(|it| it.path()))
        .collect::<std::io::Result<_>>()?;
    files.push(torch.join("version.py"));
    files.sort();
    for file in files {
        stamp += &format!("{} {}\n", Digest::of_file(&file)?.hex(), file.display());
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let is_program = name.ends_with("_test.cpp") || name == "allocate_free.cpp";
        if name.ends_with(".cpp") && !is_program {
            sources.push(file);
        }
    }
    Ok((sources, stamp))
}

/// Compiles one object per source, with as many processes as cores.
fn compile(sources: &[PathBuf], torch: &Path, work: &Path) -> Result<Vec<PathBuf>> {
    let object = |source: &PathBuf| {
        let name = source.file_stem().unwrap_or_default();
        work.join(name).with_extension("o")
    };
    let waiting = std::sync::Mutex::new(sources.iter());
    let next = || waiting.lock().ok().and_then(|mut it| it.next());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    while let Some(source) = next() {
                        let include = torch.join("include");
                        run(Command::new("g++")
                            .args(["-std=c++20", "-O2", "-Wall", "-Wextra"])
                            .arg("-Wno-interference-size")
                            .arg("-isystem")
                            .arg(&include)
                            .arg("-isystem")
                            .arg(include.join("torch/csrc/api/include"))
                            .arg("-c")
                            .arg(source)
                            .arg("-o")
                            .arg(object(source)))?;
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| {
            let ended = worker.join();
            ended.map_err(|_| anyhow::anyhow!("a thread that compiles panicked"))?
        })
    })?;
    Ok(sources.iter().map(object).collect())
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().context("running g++")?;
    if output.status.success() {
        return Ok(());
    }
    Err(refuse("the harness of the benchmarks does not compile")
        .found(String::from_utf8_lossy(&output.stderr).trim())
        .expected("tests/bench to fit the official wheel's headers")
        .remedy("install what is named above, then run it again")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The model of #181094 is correct: no blocks overlap, and freed blocks merge.
    #[test]
    fn the_model_of_the_proposal_is_a_buddy_system() {
        let folder = paths::root().join("tests/bench");
        let work = tempfile::tempdir().unwrap();
        let program = work.path().join("test");
        run(Command::new("g++")
            .args(["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror"])
            .args([
                folder.join("buddy_181094.cpp"),
                folder.join("buddy_181094_test.cpp"),
            ])
            .arg("-o")
            .arg(&program))
        .unwrap();
        let output = Command::new(&program).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
