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

/// Where `tests/sanitize/run.py` puts the C++ side with defects in it, below the target folder.
pub const SEEDED: &str = "sanitize/cpp";

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
    /// The same with a sanitizer in its C++ side, which is that of [`SEEDED`]: what g++ is told.
    Sanitized(&'static [&'static str]),
}

impl Flavour {
    /// Cargo's profile.
    fn profile(self) -> &'static str {
        match self {
            Self::Wheel => "wheel",
            Self::Debug | Self::Coverage | Self::Sanitized(_) => "wheel-debug",
        }
    }

    /// Cargo's target folder. Each flavour has its own, so that one does not invalidate the other.
    pub fn target(self) -> &'static str {
        match self {
            Self::Wheel => "wheel/cargo",
            Self::Debug => "wheel/cargo-debug",
            Self::Coverage => "wheel/cargo-coverage",
            Self::Sanitized(_) => "wheel/cargo-sanitized",
        }
    }
}

/// Build tools, each with the packages that contain it on Debian-like and on Red Hat-like systems.
const TOOLS: [(&str, &str, &str); 4] =
    [("g++", "g++", "gcc-c++"), ("cargo", "cargo", "cargo"), ("rustc", "rustc", "rust"), ("git", "git", "git")];

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
pub fn compile(target: &Path, against: &Prepared, flavour: Flavour, step: &Step) -> Result<PathBuf> {
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
    clean(&mut command, target, flavour)?;
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
    if !matches!(flavour, Flavour::Wheel) {
        command.env("PINBUDDY_DEBUG", "1");
    }
    if let Flavour::Coverage = flavour {
        // Build scripts count as well; their counts are for nobody.
        command.env("PINBUDDY_COVERAGE", "1");
        command.env("LLVM_PROFILE_FILE", target.join("scripts.profraw"));
    }
    if let Flavour::Sanitized(flags) = flavour {
        command.env("PINBUDDY_SANITIZE", flags.join(" ")).env("PINBUDDY_CPP", paths::target().join(SEEDED));
    }
    step.say("cargo build");
    let output = command.output().context("running cargo")?;
    let expected = "cxx-bridge against the patched headers";
    let messages = cargo::messages(&output, "the library", expected, "")?;
    cargo::built(&messages, "libpinbuddy_bridge.so")
}

/// Takes from the command the caller's settings that would change the bytes or their path, and gives it rustc's flags. Comes
/// before the command's own settings.
pub(crate) fn clean(command: &mut Command, target: &Path, flavour: Flavour) -> Result<()> {
    let set = env::vars_os().map(|(name, _)| name);
    for name in set.filter(|it| changes_bytes(&it.to_string_lossy())) {
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

/// Whether cargo, rustc, g++ or the crate cc, which has a compiler's variables for each target, reads this variable of the caller.
fn changes_bytes(name: &str) -> bool {
    // rustc's wrappers are programs of any kind. A cache among them would save only a first build: cargo keeps the rest.
    const WHOLE: &str = "RUSTC RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTC_BOOTSTRAP RUSTFLAGS CARGO_ENCODED_RUSTFLAGS \
        CARGO_INCREMENTAL CARGO_BUILD_INCREMENTAL CARGO_BUILD_RUSTC CARGO_BUILD_RUSTC_WRAPPER \
        CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER CARGO_BUILD_RUSTFLAGS CARGO_BUILD_TARGET MAKEFLAGS CARGO_MAKEFLAGS \
        PINBUDDY_COVERAGE PINBUDDY_CPP PINBUDDY_DEBUG PINBUDDY_SANITIZE \
        CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH LD_RUN_PATH COMPILER_PATH GCC_EXEC_PREFIX \
        CCC_OVERRIDE_OPTIONS CROSS_COMPILE CRATE_CC_NO_DEFAULTS";
    const COMPILERS: &str = "CC CFLAGS CXX CXXFLAGS CXXSTDLIB AR ARFLAGS RANLIB RANLIBFLAGS";
    let rest = name.strip_prefix("HOST_").or(name.strip_prefix("TARGET_"));
    let rest = rest.unwrap_or(name);
    WHOLE.split(' ').any(|it| it == name)
        || ["CARGO_PROFILE_", "CARGO_TARGET_"].iter().any(|it| name.starts_with(it))
        || COMPILERS.split(' ').any(|it| rest == it || rest.starts_with(&format!("{it}_")))
}

/// Paths that would end up in panic messages and `__FILE__`, and their replacements.
fn rust_flags(target: &Path, flavour: Flavour) -> Vec<String> {
    // Who reads counts looks for the sources where they are.
    if let Flavour::Coverage = flavour {
        return vec!["-Cinstrument-coverage".to_owned()];
    }
    let ours = ours(target).into_iter();
    ours.map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).collect()
}

/// Where cargo has the sources of crates, those of cxx's C++ side included, and our own folders. The last match wins, so the
/// more special paths come later.
fn ours(target: &Path) -> [(PathBuf, &'static str); 3] {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo = env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    [(cargo, "cargo"), (paths::root().to_path_buf(), "pinbuddy"), (target.to_path_buf(), "target")]
}

/// Quoted for a shell, for `CC_SHELL_ESCAPED_FLAGS`.
fn cxx_flags(target: &Path, against: &Prepared, flavour: Flavour) -> Vec<String> {
    if let Flavour::Coverage = flavour {
        return Vec::new();
    }
    let wheel = [&against.tree, &against.overlay].map(|it| (it.clone(), "torch-wheel"));
    let cuda = against.cuda.iter().map(|it| (it.clone(), "cuda"));
    let all = ours(target).into_iter().chain(wheel).chain(cuda);
    all.map(|(from, to)| quoted(&format!("-ffile-prefix-map={}={to}", from.display()))).collect()
}

/// Makes a copy of libtorch.so with our library in its NEEDED list.
pub fn add_needed(libtorch: &Path, work: &Path, tools: &Tools) -> Result<PathBuf> {
    let patched = work.join("libtorch.so");
    fs::copy(libtorch, &patched).with_context(|| format!("copying {}", libtorch.display()))?;
    let (shell, patchelf) = (Shell::new()?, &tools.patchelf);
    let output = cmd!(shell, "{patchelf} --add-needed {LIBRARY} {patched}").quiet().ignore_status().output()?;
    anyhow::ensure!(
        output.status.success(),
        "patchelf could not add {LIBRARY} to {}: {}",
        libtorch.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(patched)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_compiler_or_flag_of_the_callers_reaches_cargo() {
        let triple = "x86_64_unknown_linux_gnu";
        for name in ["CC", "CXX", "CFLAGS", "CXXFLAGS", "AR", "ARFLAGS", "RANLIB"] {
            for name in [
                name.to_owned(),
                format!("{name}_{triple}"),
                format!("{name}_{}", triple.replace('_', "-")),
                format!("HOST_{name}"),
                format!("TARGET_{name}"),
            ] {
                assert!(changes_bytes(&name), "{name}");
            }
        }
        for name in ["LINKER", "RUSTFLAGS", "RUNNER"] {
            assert!(changes_bytes(&format!("CARGO_TARGET_{}_{name}", triple.to_uppercase())));
        }
        for name in "RUSTC_WRAPPER CPATH LIBRARY_PATH CARGO_PROFILE_WHEEL_LTO".split(' ') {
            assert!(changes_bytes(name), "{name}");
        }
        for name in "PATH HOME CARGO_HOME CARGO_BUILD_JOBS ARCH HOSTNAME CCACHE_DIR".split(' ') {
            assert!(!changes_bytes(name), "{name}");
        }
    }
}
