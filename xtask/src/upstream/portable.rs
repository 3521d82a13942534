//! Packs PyTorch's tests for a machine that cannot compile: the C++ test's program, the Python file, and the names
//! of its tests.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;
use xshell::{Shell, cmd};

use super::environment::Environment;
use super::source::{Selection, Source};
use super::{cpp, debian};
use crate::build_wheel::tree;
use crate::python::tools::Tools;
use crate::runtime;
use crate::support::paths;
use crate::support::progress::Progress;
use xtask_patchkit::release::Versions;

/// How many steps `write` reports.
pub const STEPS: usize = 3;

/// Writes `bin/cuda_caching_host_allocator_test`, without paths of this machine, and
/// `pytorch/{test_cuda.py,patterns.json}` to `out`. `stock` is an environment with the official wheel.
pub fn write(
    stock: &Path,
    source: Option<&Path>,
    tools: &Tools,
    progress: &Progress,
    out: &Path,
) -> Result<()> {
    let source = progress.step("get PyTorch's tests", |step| {
        cpp::ensure_gtest(step)?;
        let root = source.map_or_else(|| debian::ensure(step), |it| Ok(it.to_path_buf()))?;
        Source::open(&root, Selection::Gpu)
    })?;
    let runtime = runtime::choose(false)?;
    let environment = progress.step("look at the official wheel in the simulator", |_| {
        Environment::probe("the official wheel", stock, &runtime)
    })?;
    progress.step("compile PyTorch's C++ test", |step| {
        let versions = Versions::read(paths::root())?;
        let cuda = versions.cuda(&environment.cuda)?;
        let include = tree::ensure_cuda(&paths::cache(), cuda, tools, step)?;
        let folder = paths::target().join("upstream/portable");
        let program = cpp::compile(&source, &environment, &include, &folder)?;
        let (shell, patchelf) = (Shell::new()?, &tools.patchelf);
        cmd!(shell, "{patchelf} --remove-rpath {program}")
            .quiet()
            .run()
            .context("taking this machine's folders out of the program")?;
        copy(&program, &out.join("bin/cuda_caching_host_allocator_test"))?;
        copy(&source.python().file, &out.join("pytorch/test_cuda.py"))?;
        let patterns = json!({
            "pinned": Selection::Pinned.patterns(),
            "gpu": Selection::Gpu.patterns(),
        });
        let file = out.join("pytorch/patterns.json");
        fs::write(&file, format!("{patterns}\n"))
            .with_context(|| format!("writing {}", file.display()))
    })
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().context("a file has a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    fs::copy(from, to)
        .with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}
