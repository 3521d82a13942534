//! The plan of `build-wheel --source`, made before anything is done, and printed with `--dry-run`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result};

use super::entry::Entry;
use super::prerequisites::PER_JOB;
use super::toolkit::Toolkit;
use super::variables::{Environment, Variables, Wanted};
use crate::cli::SourceBuild;
use crate::doctor::finding::{Finding, Status};
use crate::doctor::memory::Memory;
use crate::python::Python;
use crate::support::hash::Digest;
use crate::support::paths;
use crate::support::refusal::refuse;
use pinbuddy_machine::Files;
use xtask_patchkit::release::{Release, Versions};
use xtask_patchkit::series::{self, Patch};
use xtask_patchkit::tree::Tree;

pub struct Plan {
    /// The tree to build.
    pub tree: Tree,
    /// The release that it is.
    pub release: Release,
    /// The header that the first series changes, as upstream's tree names it.
    pub header: String,
    /// The seam's series, as in a fork wheel.
    pub series: Vec<Patch>,
    /// The series for source builds.
    pub source_series: Vec<Patch>,
    /// The interpreter that the wheel is for.
    pub python: Python,
    /// The release's build entry.
    pub entry: Entry,
    /// The CUDA toolkit, if there is one.
    pub toolkit: Option<Toolkit>,
    /// The caller's environment.
    pub environment: Environment,
    /// The build's.
    pub variables: Variables,
    /// Parallel compilers.
    pub jobs: u32,
    /// The work folder.
    pub work: PathBuf,
    /// Build in the tree itself.
    pub keep: bool,
    /// `torch.__version__` of the result.
    pub version: String,
    /// The output folder.
    pub out: PathBuf,
}

/// The request.
pub struct Asked<'a> {
    /// The tree.
    pub source: &'a Path,
    /// The interpreter.
    pub python: &'a Path,
    /// The output folder.
    pub out: &'a Path,
    /// The options of source builds.
    pub building: &'a SourceBuild,
    /// The caller's environment.
    pub environment: Environment,
}

impl Plan {
    /// Makes the plan, or refuses what cannot be built. `root` is this project's checkout.
    pub fn make(root: &Path, versions: &Versions, asked: Asked<'_>) -> Result<Self> {
        let tree = Tree::open(asked.source, versions)?;
        let release = tree.release(versions)?.clone();
        let python = Python::probe(asked.python)?;
        let entry = Entry::of(&tree)?;
        let patches = root.join("patches");
        if release.source_series.is_empty() {
            return Err(refuse(format!(
                "torch {} cannot be built from source yet",
                release.version
            ))
            .found("no source_series in patches/versions.toml")
            .expected("the patches that have its CMake build and link our library")
            .remedy(format!(
                "cargo xtask build-wheel --torch {}",
                release.version
            ))
            .into());
        }
        let mut source_series = Vec::new();
        for folder in &release.source_series {
            source_series.extend(series::read(&patches.join(folder))?);
        }
        let toolkit = Toolkit::find(&asked.environment);
        let cuda = toolkit
            .as_ref()
            .map_or_else(|| "cu<CUDA>".to_owned(), Toolkit::tag);
        let ours = env!("CARGO_PKG_VERSION");
        let version = format!("{}+{cuda}.pinbuddy.{ours}", release.version);
        let work = work_folder(&tree.root, &release, &python);
        let jobs = asked.building.jobs.unwrap_or_else(jobs);
        let wanted = Wanted {
            version: &version,
            root,
            cuda: toolkit
                .as_ref()
                .map(|it| (it.home.as_path(), it.nvcc.as_path())),
            arch: asked.building.cuda_arch.as_deref(),
            launcher: asked.building.launcher.map(crate::cli::Launcher::program),
            jobs,
            programs: &work.join("venv/bin"),
        };
        let variables = Variables::of(&wanted, &asked.environment);
        let out = std::path::absolute(asked.out).context("finding the folder for the result")?;
        Ok(Self {
            series: series::read(&patches.join(&release.series))?,
            header: versions.header.clone(),
            source_series,
            tree,
            release,
            python,
            entry,
            toolkit,
            environment: asked.environment,
            variables,
            jobs,
            work,
            keep: asked.building.keep,
            version,
            out,
        })
    }

    /// The tree that is built in.
    pub fn build_tree(&self) -> PathBuf {
        if self.keep {
            self.tree.root.clone()
        } else {
            self.work.join("tree")
        }
    }

    /// The environment's interpreter.
    pub fn interpreter(&self) -> PathBuf {
        self.work.join("venv/bin/python")
    }

    /// Where PyTorch's own build leaves its wheel.
    pub fn built(&self) -> PathBuf {
        self.work.join("built")
    }

    /// The plan as text, with every command and variable.
    pub fn describe(&self, findings: &[Finding]) -> String {
        let mut text = format!(
            "torch {} from {} for {}\n\nNeeded\n",
            self.release.version,
            self.tree.root.display(),
            self.python.describe()
        );
        for Finding {
            status,
            name,
            value,
            fixes,
        } in findings
        {
            let word = match status {
                Status::Ok => "ok",
                Status::Note => "note",
                Status::Missing => "missing",
            };
            let _ = writeln!(text, "  {word:<9}{name}: {value}");
            for fix in fixes {
                let _ = writeln!(text, "           {}: {}", fix.how, fix.command);
            }
        }
        let build_tree = self.build_tree();
        text += "\nCommands\n";
        if !self.keep {
            let _ = writeln!(text, "  copy the tree's files to {}", build_tree.display());
        }
        for patch in self.series.iter().chain(&self.source_series) {
            let _ = writeln!(text, "  git apply {}", paths::show(&patch.path));
        }
        let _ = writeln!(
            text,
            "  {} -m venv {}\n  {} -m pip install {}",
            self.python.executable.display(),
            self.work.join("venv").display(),
            self.interpreter().display(),
            quoted(&self.entry.packages),
        );
        let command = self.entry.command(&self.interpreter(), &self.built());
        let _ = writeln!(
            text,
            "  cd {} && {}",
            build_tree.display(),
            quoted(&command)
        );
        let _ = writeln!(
            text,
            "  write {}/torch-{}-{}-{}-<platform>.whl, with our package and papers; read it back",
            self.out.display(),
            self.version,
            self.python.python_tag(),
            self.python.abi_tag()
        );
        text += if self.keep {
            "  leave the series and the build in the tree (--keep)\n"
        } else {
            "  remove the copy\n"
        };
        text += "\nVariables\n";
        for (name, value) in &self.variables.set {
            let _ = writeln!(text, "  {name}={value}");
        }
        text += "\nVariables of the caller's that reach the build\n";
        for (name, value) in &self.variables.passed {
            let value = value.as_deref().unwrap_or("(not shown)");
            let _ = writeln!(text, "  {name}={value}");
        }
        let _ = writeln!(
            text,
            "\nVariables that do not\n  {}\n\nNothing was done (--dry-run).",
            self.variables.removed.join(" ")
        );
        text
    }
}

/// Quoted for a shell.
fn quoted(words: &[String]) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || "-_./=+:,".contains(it);
    let quote = |word: &String| match word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// One folder per tree, so that an interrupted build is found again.
fn work_folder(root: &Path, release: &Release, python: &Python) -> PathBuf {
    let digest = Digest::of(root.as_os_str().as_encoded_bytes()).hex();
    let name = format!("{}-{}-{}", release.version, python.abi_tag(), &digest[..8]);
    paths::target().join("source").join(name)
}

/// As many compilers as cores and memory allow.
fn jobs() -> u32 {
    let cores = thread::available_parallelism().map_or(1, |it| it.get() as u64);
    let memory = Memory::read(&Files::below(Path::new("/"))).left();
    let fits = memory.map_or(cores, |it| (it / PER_JOB).max(1));
    u32::try_from(cores.min(fits)).unwrap_or(1)
}
