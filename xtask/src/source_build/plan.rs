//! The plan of `build-wheel --source`, made before anything is done, and printed with `--dry-run`.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::build_wheel::Options;
use crate::python::Python;
use crate::support::hash::Digest;
use crate::support::paths;
use crate::support::typed::quoted;
use pinbuddy_machine::{Cgroup, Files, Limits};
use xtask_patchkit::release::{Release, Versions};
use xtask_patchkit::series::{self, Patch};
use xtask_patchkit::tree::Tree;
use xtask_patchkit::{fit, git};

/// The caller's variables that do not reach the build: other Python packages, and cargo's for this program.
pub const REMOVED: &str = "CARGO_BUILD_TARGET CARGO_ENCODED_RUSTFLAGS CARGO_MAKEFLAGS CARGO_TARGET_DIR LD_PRELOAD MAKEFLAGS \
                           PYTHONHOME PYTHONPATH RUSTFLAGS VIRTUAL_ENV";
/// Memory of one compiler with template-heavy kernels, in bytes.
const PER_JOB: u64 = 4 << 30;
const LEGACY: &str = "setuptools.build_meta:__legacy__";
/// Releases with the legacy backend set no upper bounds, but their oldest third-party projects do not configure
/// with CMake 4.
const OF_THEIR_TIME: [(&str, &str); 2] = [("cmake", "cmake<4"), ("setuptools", "setuptools<82")];

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
    /// What the tree's own build needs, as pip takes it.
    pub packages: Vec<String>,
    /// Whether that build is `setup.py`'s, and not any front end's.
    legacy: bool,
    /// CUDA's compiler, and its version: `13.2`.
    pub nvcc: Option<(PathBuf, String)>,
    /// What is set in the build's environment.
    pub variables: Vec<(&'static str, String)>,
    /// The work folder: one for each tree, so that an interrupted build is found again.
    pub work: PathBuf,
    /// Build in the tree itself.
    pub keep: bool,
    /// `torch.__version__` of the result.
    pub version: String,
    /// The output folder.
    pub out: PathBuf,
}

impl Plan {
    /// Makes the plan, or refuses what cannot be built. `root` is this project's checkout; a tree may be built in itself.
    pub fn make(root: &Path, versions: &Versions, (source, keep): (&Path, bool), options: &Options) -> Result<Self> {
        let tree = Tree::open(source, versions)?;
        let release = tree.release(versions)?.clone();
        let python = Python::probe(&options.python)?;
        let (packages, legacy) = entry(&tree)?;
        let read = |name: &String| series::read(&root.join("patches").join(name));
        let source_series = release.source_series.iter().map(read).collect::<Result<Vec<_>>>()?;
        let nvcc = nvcc();
        let cuda = nvcc.as_ref().map_or("<CUDA>".to_owned(), |(_, version)| version.replace('.', ""));
        let version = format!("{}+cu{cuda}.pinbuddy.{}", release.version, env!("CARGO_PKG_VERSION"));
        let digest = Digest::of(tree.root.as_os_str().as_encoded_bytes()).hex();
        let work = format!("{}-{}-{}", release.version, python.abi_tag(), &digest[..8]);
        let work = paths::target().join("source").join(work);
        Ok(Self {
            variables: variables(root, &version, nvcc.as_ref(), &work),
            series: read(&release.series)?,
            header: versions.header.clone(),
            source_series: source_series.concat(),
            tree,
            release,
            python,
            packages,
            legacy,
            nvcc,
            work,
            keep,
            version,
            out: std::path::absolute(&options.out).context("finding the folder for the result")?,
        })
    }

    /// The tree that is built in.
    pub fn build_tree(&self) -> PathBuf {
        if self.keep { self.tree.root.clone() } else { self.work.join("tree") }
    }

    /// The environment's interpreter.
    pub fn interpreter(&self) -> PathBuf {
        self.work.join("venv/bin/python")
    }

    /// Where PyTorch's own build leaves its wheel.
    pub fn built(&self) -> PathBuf {
        self.work.join("built")
    }

    /// The command that writes a wheel, run in the tree's root.
    pub fn command(&self) -> Vec<String> {
        let arguments = match self.legacy {
            true => "setup.py bdist_wheel --dist-dir",
            false => "-m build --wheel --no-isolation --skip-dependency-check --outdir",
        };
        let mut words = vec![self.interpreter().display().to_string()];
        words.extend(arguments.split(' ').map(str::to_owned));
        words.push(self.built().display().to_string());
        words
    }

    /// What PyTorch's build needs and is not there, each with what to do.
    pub fn missing(&self) -> Result<Vec<String>> {
        let mut missing = Vec::new();
        if let Err(why) = crate::build_wheel::compile::compilers() {
            missing.push(why.to_string());
        }
        if !self.python.headers {
            missing.push(format!("Python.h of {}: install python3-dev", self.python.describe()));
        }
        if self.nvcc.is_none() {
            missing.push(
                "nvcc (CUDACXX, CUDA_HOME, PATH, /usr/local/cuda): export CUDA_HOME=DIR, where a toolkit is".to_owned(),
            );
        }
        let root = &self.tree.root;
        if self.source_series.is_empty() {
            missing.push(
                "the series of this release for source builds: nobody has made one (patches/versions.toml)".to_owned(),
            );
        }
        if root.join(".gitmodules").exists() && root.join(".git").exists() {
            let shell = Shell::new()?;
            let status = git::text(git::unbound(cmd!(shell, "git -C {root} submodule status")))?;
            if let Some(first) = status.lines().find(|it| it.starts_with('-')) {
                let name = first.split_whitespace().nth(1).unwrap_or_default();
                missing.push(format!(
                    "submodules, {name} for one: git -C {} submodule update --init --recursive",
                    root.display()
                ));
            }
        }
        Ok(missing)
    }

    /// The plan as text, with every command and variable.
    pub fn describe(&self, missing: &[String]) -> String {
        let (tree, out, version) = (self.build_tree(), self.out.display(), &self.version);
        let quote = |words: &[String]| words.iter().map(|it| quoted(it)).collect::<Vec<_>>();
        let shown = |path: &Path| quoted(&path.display().to_string());
        let (python, inner) = (shown(&self.python.executable), shown(&self.interpreter()));
        let copy = format!("copy the tree's files to {}", tree.display());
        let patches = self.series.iter().chain(&self.source_series);
        let mut commands: Vec<String> = (!self.keep).then_some(copy).into_iter().collect();
        commands.extend(patches.map(|it| format!("git apply {}", paths::show(&it.path))));
        commands.extend([
            format!("{python} -m venv {}", shown(&self.work.join("venv"))),
            format!("{inner} -m pip install {}", quote(&self.packages).join(" ")),
            format!("cd {} && {}", shown(&tree), quote(&self.command()).join(" ")),
            format!("write {out}/torch-{version}-….whl, with our package and papers; read it back"),
        ]);
        let missing = missing.iter().map(|it| format!("missing  {it}"));
        let variables = self.variables.iter().map(|(name, value)| format!("{name}={value}"));
        let listed =
            |lines: &mut dyn Iterator<Item = String>| -> String { lines.map(|it| format!("  {it}\n")).collect() };
        format!(
            "torch {} from {} for {}\n{}\nCommands\n{}\nVariables\n{}\n\
             All others of the caller's reach the build, but for {REMOVED}.\nNothing was done (--dry-run).\n",
            self.release.version,
            self.tree.root.display(),
            self.python.describe(),
            listed(&mut missing.into_iter()),
            listed(&mut commands.into_iter()),
            listed(&mut variables.into_iter()),
        )
    }
}

/// What the tree's own build needs, and whether it is `setup.py`'s, according to its pyproject.toml.
fn entry(tree: &Tree) -> Result<(Vec<String>, bool)> {
    let shown = format!("{}/pyproject.toml", tree.root.display());
    let text = fit::read_below(&tree.root, "pyproject.toml")?.with_context(|| format!("there is no {shown}"))?;
    let project: toml::Table =
        toml::from_str(&String::from_utf8_lossy(&text)).with_context(|| format!("reading {shown}"))?;
    let of_build = |key| project.get("build-system")?.get(key).cloned();
    let packages = of_build("requires").with_context(|| format!("{shown} requires nothing"))?;
    let mut packages: Vec<String> = packages.try_into().with_context(|| format!("reading what {shown} requires"))?;
    let legacy = of_build("build-backend").is_some_and(|it| it.as_str() == Some(LEGACY));
    for package in packages.iter_mut().filter(|_| legacy) {
        if let Some((_, bounded)) = OF_THEIR_TIME.iter().find(|(name, _)| package == name) {
            (*bounded).clone_into(package);
        }
    }
    packages.extend((!legacy).then(|| "build".to_owned()));
    Ok((packages, legacy))
}

/// CUDA's compiler as PyTorch's build would find it, and its version.
fn nvcc() -> Option<(PathBuf, String)> {
    let set = |name| env::var_os(name).map(PathBuf::from);
    let homes = [set("CUDA_HOME"), set("CUDA_PATH")].map(|it| Some(it?.join("bin")));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = homes.into_iter().flatten().chain(env::split_paths(&path));
    let usual = folders.chain(["/usr/local/cuda/bin".into()]);
    let mut places = set("CUDACXX").into_iter().chain(usual.map(|it| it.join("nvcc")));
    let shell = Shell::new().ok()?;
    places.find_map(|nvcc| {
        let command = cmd!(shell, "{nvcc} --version").quiet().ignore_stderr();
        let said = command.read().ok()?;
        let (_, rest) = said.split_once("release ")?;
        Some((nvcc, rest.split(',').next()?.to_owned()))
    })
}

/// What is set in the build's environment.
fn variables(root: &Path, version: &str, nvcc: Option<&(PathBuf, String)>, work: &Path) -> Vec<(&'static str, String)> {
    let path = env::var("PATH").unwrap_or_default();
    let bin = work.join("venv/bin");
    let mut set = vec![
        ("PYTORCH_BUILD_VERSION", version.to_owned()),
        ("PYTORCH_BUILD_NUMBER", "1".to_owned()),
        ("USE_CUDA", "1".to_owned()),
        ("USE_PINBUDDY", "1".to_owned()),
        ("PINBUDDY_ROOT", root.display().to_string()),
        ("PINBUDDY_FORK_VERSION", version.to_owned()),
        ("CMAKE_GENERATOR", "Ninja".to_owned()),
        ("PYTHONNOUSERSITE", "1".to_owned()),
        ("PATH", format!("{}:{path}", bin.display())),
    ];
    set.extend(nvcc.map(|(it, _)| ("CUDACXX", it.display().to_string())));
    let unset = |name: &str| env::var_os(name).is_none();
    set.extend(unset("MAX_JOBS").then(|| ("MAX_JOBS", jobs().to_string())));
    // PyTorch's C++ tests are half of the work, so they are built only if requested.
    set.extend(unset("BUILD_TEST").then(|| ("BUILD_TEST", "0".to_owned())));
    set
}

/// As many compilers as cores and memory allow.
fn jobs() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, |it| it.get() as u64);
    let limits = Limits::read(&Files::below(Path::new("/")));
    let left = [limits.available, limits.cgroup.as_ref().map(Cgroup::left)];
    let fits = left.into_iter().flatten().min().map_or(cores, |it| (it / PER_JOB).max(1));
    u32::try_from(cores.min(fits)).unwrap_or(1)
}
