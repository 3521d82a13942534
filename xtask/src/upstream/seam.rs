//! Tests the seam alone, without the engine: what a pull request proposes to PyTorch.
//!
//! Runs the pull request's own test, and PyTorch's tests with a CUDA backend on the patched header, preloaded in
//! front of the official wheel's.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use super::cpp;
use super::environment::Environment;
use super::outcome::{Outcome, Outcomes};
use crate::runtime::Runtime;
use crate::support::paths;
use crate::support::refusal::refuse;
use crate::wheel::header::in_wheel;
use xtask_patchkit::git;
use xtask_patchkit::release::Versions;
use xtask_patchkit::series::{self, Patch};
use xtask_patchkit::tree::Tree;

/// A tree's own CUDA backend.
const BACKEND: &str = "aten/src/ATen/cuda/CachingHostAllocator.cpp";
/// The line that the backend prints at the end of a program that it served.
pub const SERVED: &str = "seam backend: served";

/// The compiled seam.
#[derive(Debug)]
pub struct Seam {
    /// All patches, the release's and the pull request's.
    pub patches: Vec<Patch>,
    /// The test that the patches add.
    test: PathBuf,
    /// The backend, to be preloaded.
    pub library: PathBuf,
    /// The sources of the backend.
    pub backend: &'static str,
}

impl Seam {
    /// Applies the patches to an environment's headers, and compiles. `tree` is the source of PyTorch's tests; its
    /// own backend is used if it is of the series' release.
    pub fn make(
        environment: &Environment,
        cuda_include: &[PathBuf],
        tree: &Path,
        folder: &Path,
    ) -> Result<Self> {
        let root = paths::root();
        let versions = Versions::read(root)?;
        // A pull request can only be made from the newest series.
        let release = versions.find(None)?;
        let mut patches = series::read(&root.join("patches").join(&release.series))?;
        if let Some(name) = &versions.pull_request {
            patches.extend(series::read(&root.join("patches").join(name))?);
        }
        let sources = folder.join("sources");
        let _ = fs::remove_dir_all(&sources);
        fs::create_dir_all(&sources).with_context(|| format!("creating {}", sources.display()))?;
        let site = environment
            .torch
            .parent()
            .context("torch is in no folder")?;
        let include = patched(&patches, site, &sources)?;
        let mut files = patches.iter().flat_map(|it| &it.files);
        let is_test = |(path, adds): &(&String, &bool)| **adds && path.ends_with(".cpp");
        let (test, _) = files.find(is_test).context("no patch adds a test")?;
        let own = tree.join(BACKEND);
        let same = |it: &Tree| it.header.as_ref() == Some(&release.header_sha256);
        let from_tree = own.is_file() && Tree::open(tree, &versions).is_ok_and(|it| same(&it));
        let build = Build {
            environment,
            cuda_include,
            include: &include,
            patches: &patches,
            tree: from_tree.then_some(own.as_path()),
        };
        let program = folder.join("host_allocator_subclass_test");
        build.run(
            &sources.join(test),
            &program,
            &["-lgtest_main", "-lgtest", "-pthread"],
        )?;
        let library = folder.join("libseam_backend.so");
        // Binds its own symbols, since the wheel's library has functions of the same names for another layout.
        let mut flags = vec!["-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-Bsymbolic"];
        let define = format!("-DPINBUDDY_TREE_BACKEND=\"{}\"", own.display());
        if from_tree {
            flags.push(&define);
        }
        build.run(
            &root.join("tests/upstream/seam_backend.cpp"),
            &library,
            &flags,
        )?;
        Ok(Self {
            patches,
            test: program,
            library,
            backend: if from_tree {
                "the tree's own CUDA backend"
            } else {
                "a small CUDA backend of the test's"
            },
        })
    }

    /// Runs the test that the patches add; all its cases have to pass.
    pub fn run_test(&self, runtime: &Runtime, limit: Duration, log: &Path) -> Result<Outcomes> {
        let mut command = runtime.command(&self.test)?;
        let (outcomes, _) = cpp::run(&mut command, limit, log)?;
        let bad: Vec<_> = outcomes
            .iter()
            .filter(|(_, outcome)| **outcome != Outcome::Passed)
            .map(|(name, outcome)| format!("{name}: {outcome:?}"))
            .collect();
        if bad.is_empty() && !outcomes.is_empty() {
            return Ok(outcomes);
        }
        Err(refuse("the test that the pull request adds does not pass")
            .found(if bad.is_empty() {
                "no test ran".to_owned()
            } else {
                bad.join("\n")
            })
            .expected("all of its tests to pass, with no device")
            .remedy(format!("look at {}", paths::show(log)))
            .into())
    }

    /// Adds the preloaded backend to a command.
    pub fn in_front(&self, command: &mut Command) {
        let before = command
            .get_envs()
            .find(|(name, _)| *name == "LD_PRELOAD")
            .and_then(|(_, value)| value)
            .map(|it| it.to_string_lossy().into_owned());
        let own = self.library.display();
        let value = before.map_or_else(|| own.to_string(), |it| format!("{it}:{own}"));
        command.env("LD_PRELOAD", value);
    }
}

/// Applies the patches to the environment's headers and writes them to a folder for the front of the include path.
/// Skips files that are neither in a wheel nor new. Returns the folder.
fn patched(patches: &[Patch], site: &Path, folder: &Path) -> Result<PathBuf> {
    let mut absent = BTreeSet::new();
    for (path, &adds) in patches.iter().flat_map(|it| &it.files) {
        let there = in_wheel(path)
            .map(|it| site.join(it))
            .filter(|it| it.is_file());
        match there {
            Some(from) => {
                let to = folder.join(path);
                fs::create_dir_all(to.parent().unwrap_or(folder))?;
                fs::copy(&from, &to).with_context(|| format!("copying {}", from.display()))?;
            }
            None if !adds => {
                absent.insert(path.as_str());
            }
            None => {}
        }
    }
    let absent: Vec<&str> = absent.into_iter().collect();
    for patch in patches {
        git::apply(&patch.path, folder, &absent)?.map_err(|git| {
            refuse(format!("{} does not apply", patch.name))
                .found(git)
                .expected("the headers of the newest supported release")
                .remedy("cargo xtask test-upstream --seam without --torch")
        })?;
    }
    let include = folder.join("include");
    for path in patches.iter().flat_map(|it| it.files.keys()) {
        let Some(inside) = in_wheel(path) else {
            continue;
        };
        let to = include.join(inside.trim_start_matches("torch/include/"));
        fs::create_dir_all(to.parent().unwrap_or(&include))?;
        fs::copy(folder.join(path), &to).with_context(|| format!("copying {path}"))?;
    }
    Ok(include)
}

/// Compiler options for the patched headers.
struct Build<'a> {
    environment: &'a Environment,
    cuda_include: &'a [PathBuf],
    include: &'a Path,
    patches: &'a [Patch],
    /// The tree's own backend, if that is compiled.
    tree: Option<&'a Path>,
}

impl Build<'_> {
    /// Compiles `target` unless it is current.
    fn run(&self, source: &Path, target: &Path, flags: &[&str]) -> Result<()> {
        let Self {
            environment,
            cuda_include,
            include,
            patches,
            tree,
        } = self;
        let torch = environment.torch.join("include");
        let api = torch.join("torch/csrc/api/include");
        let (lib, runtime) = (environment.torch.join("lib"), &environment.cuda_runtime);
        let runtime_folder = runtime
            .parent()
            .context("the CUDA runtime is in no folder")?;
        let packages = environment.include.iter().chain(*cuda_include);
        let packages = packages.flat_map(|folder| ["-isystem".as_ref(), folder.as_os_str()]);
        let shell = Shell::new()?;
        let command = cmd!(
            shell,
            "g++ -std=c++20 -O1 -w -DUSE_CUDA -I{include} -isystem {torch} -isystem {api} {packages...}
             {source} -o {target} -L{lib} -Wl,--no-as-needed -ltorch -ltorch_cuda
             -ltorch_cpu -lc10_cuda -lc10 {runtime} {flags...} -Wl,-rpath,{lib} -Wl,-rpath,{runtime_folder}"
        );
        let mut inputs = environment.inputs()?.text(&command.to_string())?;
        for file in patches.iter().map(|it| it.path.as_path()).chain([source]) {
            inputs = inputs.file(file)?;
        }
        if let Some(tree) = tree {
            inputs = inputs.file(tree)?;
        }
        inputs.make(target, || self.compiled(command, source))
    }

    fn compiled(&self, command: xshell::Cmd<'_>, source: &Path) -> Result<()> {
        let output = command.quiet().ignore_status().output();
        let output = output.context("running g++")?;
        if output.status.success() {
            return Ok(());
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        let errors = complaint.lines().filter(|line| line.contains("error"));
        let errors: Vec<_> = errors.take(8).collect();
        Err(refuse(format!(
            "{} does not compile with the seam",
            paths::show(source)
        ))
        .found(errors.join("\n"))
        .expected(format!(
            "it to fit the headers of torch {} with the patches",
            self.environment.version
        ))
        .remedy("refresh the patches, or mend what is named above")
        .into())
    }
}
