//! The CMake part of a source build: patches/source applied to a stand-in for PyTorch's tree, with the libraries of
//! an official wheel. CMake really builds and links our library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use xshell::{Shell, cmd};

use crate::build_wheel::compile::LIBRARY;
use crate::build_wheel::plan::Plan;
use crate::build_wheel::prepare::{self, Prepared};
use crate::cli;
use crate::python::pip;
use crate::support::progress::Progress;
use crate::support::refusal::refuse;
use crate::support::scratch::Scratch;
use crate::support::tally::Tally;
use crate::support::{lock, paths};
use crate::wheel::platform::needed;
use xtask_patchkit::git;
use xtask_patchkit::series;

/// The newest CMake before 4, which the oldest release needs, too.
const CMAKE: [&str; 2] = ["cmake>=3.27,<4", "ninja"];
const LINKED: &str = "libtorch_cuda.so";

/// With the option, without it, and again without changes.
pub fn cmake(args: &cli::BuildWheel) -> Result<Tally> {
    let plan = Plan::make(args)?;
    let _lock = lock::take("build")?;
    let progress = Progress::new(prepare::STEPS + 4);
    let ready = prepare::prepare(&plan, &progress)?;
    let folder = paths::target().join("source-cmake");
    let tools = folder.join("tools");
    progress.step("get CMake and ninja", |step| match tools.exists() {
        true => Ok(()),
        false => pip::install_into(&ready.tools.python, &CMAKE, false, &tools, step),
    })?;
    let tree = folder.join("tree");
    lay_out(&plan, &tree)?;
    let project = Project {
        tree,
        tools,
        build: folder.join("build"),
        ready: &ready,
    };
    let asks = |library: &Path| -> Result<bool> {
        let bytes = fs::read(library).with_context(|| format!("reading {}", library.display()))?;
        Ok(needed(&bytes)?.0.iter().any(|it| it == LIBRARY))
    };
    let without = progress.step("build without the option", |_| project.install(false))?;
    ensure!(
        !asks(&without.join(LINKED))? && !without.join(LIBRARY).exists(),
        "without USE_PINBUDDY, {LINKED} is not stock's"
    );
    let with = progress.step("build with it", |_| project.install(true))?;
    ensure!(
        asks(&with.join(LINKED))?,
        "{LINKED} does not ask for {LIBRARY}"
    );
    let (needs, own) = needed(&fs::read(with.join(LIBRARY))?)?;
    ensure!(own.as_deref() == Some(LIBRARY), "its SONAME is {own:?}");
    ensure!(
        !needs.iter().any(|it| it == LINKED),
        "{LIBRARY} needs {LINKED}, which is linked with it"
    );
    let linked = project.build.join("with/lib").join(LINKED);
    let before = linked.metadata()?.modified()?;
    progress.step("build again", |_| project.install(true))?;
    ensure!(
        before == linked.metadata()?.modified()?,
        "nothing has changed, and {LINKED} was linked anew"
    );
    Ok(Tally {
        passed: 3,
        ..Tally::default()
    })
}

/// The patched stand-in; unchanged files keep their time.
fn lay_out(plan: &Plan, tree: &Path) -> Result<()> {
    let scratch = Scratch::folder(tree)?;
    let (stand_in, shell) = (paths::root().join("tests/source-build"), Shell::new()?);
    let to = scratch.path();
    cmd!(shell, "cp --archive {stand_in}/. {to}")
        .quiet()
        .run()?;
    let folder = paths::root().join("patches/source");
    ensure!(
        plan.release.source_series.iter().any(|it| it == "source"),
        "torch {} has another series for its CMake",
        plan.release.version
    );
    for patch in series::read(&folder)? {
        git::apply(&patch.path, scratch.path())?
            .map_err(|said| refuse(format!("{} does not apply", patch.name)).found(said))?;
    }
    scratch.publish(tree)
}

struct Project<'a> {
    tree: PathBuf,
    tools: PathBuf,
    build: PathBuf,
    ready: &'a Prepared,
}

impl Project<'_> {
    /// Configures, builds and installs it; returns the folder of its libraries.
    fn install(&self, with: bool) -> Result<PathBuf> {
        let build = self.build.join(if with { "with" } else { "without" });
        let against = self.ready.against();
        let first = against
            .cuda
            .first()
            .context("no folder of CUDA's headers")?;
        let libraries = first.with_file_name("lib");
        let runtime = fs::read_dir(&libraries)?.flatten().map(|it| it.path());
        let runtime = runtime.filter(|it| it.to_string_lossy().contains("/libcudart.so."));
        let runtime = runtime
            .last()
            .context("no libcudart beside CUDA's headers")?;
        let folders: Vec<_> = against.cuda.iter().map(|it| it.to_string_lossy()).collect();
        let shown = |path: &Path| path.display().to_string();
        let define = |name: &str, value: &str| format!("-D{name}={value}");
        let definitions = [
            define("WHEEL", &shown(&against.tree.join("torch"))),
            define("OVERLAY", &shown(&against.overlay.join("torch/include"))),
            define("CUDA_INCLUDE", &folders.join(";")),
            define("CUDART", &shown(&runtime)),
            define("USE_PINBUDDY", if with { "ON" } else { "OFF" }),
            define("PINBUDDY_ROOT", &shown(paths::root())),
            define("PINBUDDY_FORK_VERSION", against.fork_version),
            define("CMAKE_INSTALL_PREFIX", &shown(&build.join("installed"))),
            define("CMAKE_MAKE_PROGRAM", &shown(&self.tools.join("bin/ninja"))),
        ];
        let (tree, folder) = (shown(&self.tree), shown(&build));
        let mut configure = vec!["-S", &tree, "-B", &folder, "-G", "Ninja"];
        configure.extend(definitions.iter().map(String::as_str));
        self.run(&configure)?;
        self.run(&["--build", &folder])?;
        self.run(&["--install", &folder])?;
        Ok(build.join("installed/lib"))
    }

    fn run(&self, arguments: &[&str]) -> Result<()> {
        let program = self.tools.join("cmake/data/bin/cmake");
        let mut command = Command::new(&program);
        command.args(arguments);
        for name in ["USE_PINBUDDY", "CXXFLAGS", "RUSTFLAGS", "CARGO_TARGET_DIR"] {
            command.env_remove(name);
        }
        let output = command
            .output()
            .with_context(|| format!("running {}", program.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        Err(refuse(format!("cmake {} failed", arguments[0]))
            .found(String::from_utf8_lossy(&said).trim())
            .expected("the stand-in of tests/source-build to build")
            .into())
    }
}
