//! `cargo xtask sim`: runs a command with the simulated CUDA runtime in front of the real one.
//!
//! If the Python on PATH has no torch, an environment with the fork is put before it.

use std::env;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cli;
use crate::python::simulator::{DRIVER, MANAGEMENT, PRELOAD, Simulator, before};
use crate::support::cargo;
use crate::support::paths;
use crate::support::scratch;
use crate::support::watch::saying;
use crate::venv;

/// The driver stub, as cargo names it.
const STUB: &str = "libpinbuddy_cuda_driver_stub.so";

/// Replaces this process with the command, so that signals and its exit status are its own.
pub fn run(args: &cli::Sim) -> Result<()> {
    let (program, arguments) = args.command.split_first().context("there is no command to run")?;
    let mut command = build()?.command(program, args.devices)?;
    command.args(arguments);
    let quiet = env::var_os("PINBUDDY_SIM_QUIET").is_some_and(|it| it == "1");
    let say = |line: String| {
        if !quiet {
            eprintln!("{line}");
        }
    };
    let forks = venv::forks(&paths::target().join("venv"));
    match Torch::of(program, has_torch, &forks) {
        Torch::OnPath => {}
        Torch::Fork(folder) => {
            let shown = paths::show(&folder);
            say(format!("no torch for the Python on PATH: {shown}/bin comes first"));
            let path = before(folder.join("bin").as_os_str(), env::var_os("PATH"));
            command.env("PATH", path);
        }
        Torch::Nowhere => say(format!(
            "no torch for {program}: `cargo xtask venv` makes an environment with the fork, to be found here"
        )),
    }
    Err(command.exec()).with_context(|| format!("{program} cannot be run"))
}

/// Where a command finds torch.
#[derive(Debug, PartialEq, Eq)]
enum Torch {
    /// With the Python on PATH, or the program was given by its path.
    OnPath,
    /// In this environment with the fork.
    Fork(PathBuf),
    /// The Python has no torch, and there is no environment.
    Nowhere,
}

impl Torch {
    /// Finds torch for a program. `has_torch` says whether an interpreter on PATH has it; `forks` are environments,
    /// the best first.
    fn of(program: &str, has_torch: impl Fn(&str) -> bool, forks: &[PathBuf]) -> Self {
        let is_python = program.starts_with("python");
        // Other programs start their Python by this name, if any.
        let interpreter = if is_python { program } else { "python3" };
        if program.contains('/') || has_torch(interpreter) {
            return Self::OnPath;
        }
        match forks.first() {
            Some(folder) => Self::Fork(folder.clone()),
            None if is_python => Self::Nowhere,
            None => Self::OnPath,
        }
    }
}

/// Whether an interpreter would find torch. Does not import it.
fn has_torch(interpreter: &str) -> bool {
    const PROBE: &str = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)";
    let output = Command::new(interpreter).args(["-c", PROBE]).output();
    output.is_ok_and(|it| it.status.success())
}

/// Compiles the two libraries unless they are current, and installs them below target/; the stub under both names that
/// PyTorch looks for.
pub fn build() -> Result<Simulator> {
    const PACKAGES: [&str; 2] = ["pinbuddy-cuda-sim", "pinbuddy-cuda-driver-stub"];
    let what = "the simulated CUDA runtime";
    let output = saying(&format!("building {what}"), || {
        let mut command = cargo::build(&PACKAGES, "release");
        let output = command.arg("--target-dir").arg(paths::target()).output();
        output.context("running cargo")
    })?;
    let again = format!("cargo build --release -p {}", PACKAGES.join(" -p "));
    let messages = cargo::messages(&output, what, "tests/cuda-sim", &again)?;
    let folder = paths::target().join("cuda-sim");
    for (library, name) in [(PRELOAD, PRELOAD), (STUB, DRIVER), (STUB, MANAGEMENT)] {
        // By a rename, so that processes which have loaded the old one keep it.
        let built = fs::read(cargo::built(&messages, library)?)?;
        scratch::replace(&folder.join(name), &built)?;
    }
    Ok(Simulator(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torch_is_found_on_path_or_else_in_the_forks_environment() {
        let forks = [PathBuf::from("/venv/2.15.0"), PathBuf::from("/venv/2.9.1")];
        let only = |name: &'static str| move |it: &str| it == name;
        let fork = || Torch::Fork(forks[0].clone());
        for (program, with_torch, forks, expected) in [
            ("python", "python", &forks[..], Torch::OnPath),
            ("python", "none", &forks, fork()),
            ("/usr/bin/python3", "none", &forks, Torch::OnPath),
            ("torchrun", "python3", &forks, Torch::OnPath),
            ("torchrun", "none", &forks, fork()),
            ("python3.11", "none", &[], Torch::Nowhere),
            ("bash", "none", &[], Torch::OnPath),
        ] {
            assert_eq!(Torch::of(program, only(with_torch), forks), expected);
        }
        assert!(!has_torch("/nowhere/python9"));
    }
}
