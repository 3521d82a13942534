//! Compiles the programs of a run and PyTorch's tests against the official wheel, without fixed paths.

use std::fs;

use anyhow::{Context, Result};

use crate::bench::harness;
use crate::cli::gpu::Programs;
use crate::programs::QUESTIONS;
use crate::python::{Python, tools};
use crate::support::paths;
use crate::support::progress::Progress;
use crate::upstream::portable;
use crate::venv;

pub fn run(args: &Programs) -> Result<()> {
    let python = Python::probe(&args.python)?;
    let stock = venv::ensure(Some(&args.torch), true, &args.python)?;
    let tools = tools::ensure(&python)?;
    let bin = args.out.join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("creating {}", bin.display()))?;
    let progress = Progress::new(1 + portable::STEPS);
    portable::write(&stock, args.source.as_deref(), &tools, &progress, &args.out)?;
    progress.step("compile the harness of the benchmark", |_| {
        harness::build(&stock, &bin.join("harness"))
    })?;
    fs::copy(QUESTIONS.ensure()?, bin.join("questions")).context("copying the questions")?;
    println!("{}", paths::show(&args.out));
    Ok(())
}
