//! `cargo xtask gpu programs`: compiles the programs of a run and PyTorch's tests, for a machine with a GPU and no compiler.
//!
//! Against the official wheel, without fixed paths. The run itself is tests/gpu, in Python.

use std::env;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::bench;
use crate::cli::gpu::{Command as Part, Gpu};
use crate::programs::QUESTIONS;
use crate::support::paths;
use crate::support::progress::Progress;
use crate::support::refusal::refuse;
use crate::test::pytorch;
use crate::venv;

pub fn run(args: &Gpu) -> Result<()> {
    let Part::Programs(args) = &args.command;
    let stock = venv::ensure(Some(&args.torch), true, &args.python)?;
    let bin = args.out.join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("creating {}", bin.display()))?;
    let progress = Progress::new(2);
    let include = pytorch::cuda_include(&stock, &args.python)?;
    progress.step("compile PyTorch's C++ test", |_| {
        let mut command = Command::new(&args.python);
        command
            .arg(paths::root().join("tests/upstream/compiled.py"))
            .arg("--stock")
            .arg(stock.python())
            .arg("--include")
            .arg(env::join_paths(include)?);
        if let Some(source) = &args.source {
            command.arg("--source").arg(std::path::absolute(source)?);
        }
        let status = command.arg(&args.out).status()?;
        if status.success() {
            return Ok(());
        }
        Err(refuse("PyTorch's tests cannot be packed")
            .found("the error above")
            .into())
    })?;
    progress.step("compile the harness of the benchmark", |_| {
        bench::build(&stock, &bin.join("harness"))
    })?;
    fs::copy(QUESTIONS.ensure()?, bin.join("questions")).context("copying the questions")?;
    println!("{}", paths::show(&args.out));
    Ok(())
}
