//! Tests of the simulated CUDA runtime: against CUDA's headers, and with the official wheel.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::build_wheel::plan::Plan;
use crate::build_wheel::{Wanted, tree};
use crate::python::{pip, tools};
use crate::support::paths;
use crate::support::progress::Progress;
use crate::support::tally::Tally;
use xtask_patchkit::release::Versions;

use super::{Ready, pytest};

/// Reads C headers for bindgen. Pinned, since the output is compared byte for byte.
const LIBCLANG: &str = "libclang==18.1.1";
/// The last CUDA 12 with torch wheels on PyPI.
const CUDA_12: &str = "12.8";

/// The committed bindings are current, and a C program with the real headers works.
pub fn headers(args: &Wanted) -> Result<Tally> {
    let plan = Plan::make(args)?;
    let tools = tools::ensure(&plan.python)?;
    let versions = Versions::read(paths::root())?;
    let newest = versions.cuda.last_key_value();
    let (_, newest) = newest.context("versions.toml names no CUDA")?;
    let last_12 = versions.cuda(CUDA_12)?;
    let clang = clang();
    let (cuda_13, cuda_12) = Progress::new(1).step("get CUDA's headers and libclang", |step| {
        if !clang.exists() {
            pip::install_into(&tools.python, &[LIBCLANG], true, &clang, step)?;
        }
        Ok((
            tree::ensure_cuda(&plan.cache, newest, &tools, step)?,
            tree::ensure_cuda(&plan.cache, last_12, &tools, step)?,
        ))
    })?;
    let variables = [("PINBUDDY_CUDA12_INCLUDE", joined(&cuda_12)?), ("PINBUDDY_CUDA_INCLUDE", joined(&cuda_13)?)];
    super::rust::ignored("pinbuddy-cuda-sim", &variables)
}

fn clang() -> PathBuf {
    paths::target().join("tools").join(LIBCLANG)
}

/// The folder of libclang, installed if missing.
pub fn libclang() -> PathBuf {
    clang().join("clang/native")
}

fn joined(folders: &[PathBuf]) -> Result<String> {
    Ok(env::join_paths(folders)?.to_string_lossy().into_owned())
}

/// Copies, streams, events and pinned memory with the official wheel, on two simulated GPUs.
pub fn under_stock(ready: &Ready<'_>) -> Result<Tally> {
    let interpreter = crate::sim::build()?.command(ready.stock.python(), 2)?;
    let mut command = pytest::command(interpreter, "tests/cuda-sim/python");
    let packages = pytest::packages(ready.python, &pytest::TWO)?;
    pytest::counted(pytest::by_file(command.env("PYTHONPATH", packages)))
}

/// The model of PyTorch's device allocator replays what programs did with the official wheel.
pub fn model_beside(ready: &Ready<'_>) -> Result<Tally> {
    let simulator = crate::sim::build()?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut variables =
        vec![("PINBUDDY_STOCK_PYTHON", text(&ready.stock.python())), ("PINBUDDY_SIM_FOLDER", text(&simulator.0))];
    variables.extend(ready.all.then(|| (super::fork::ALL, "1".to_owned())));
    super::rust::ignored("pinbuddy-replay", &variables)
}
