//! `cargo xtask sim`: runs a command with the simulated CUDA runtime in front of the real one.
//!
//! Other commands use [`Simulator`]: built once, it gives the environment of as many runs as needed.
//! The environment is for the command alone; cargo and xtask never run under the simulator.
//! Where the Python on PATH has no torch, that of an environment with the fork is found before it.

use std::convert::Infallible;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use xshell::{Shell, cmd};

use crate::cli;
use crate::report::refusal::refuse;
use crate::support::cargo;
use crate::support::paths;
use crate::support::scratch::Scratch;
use crate::venv;

/// What the simulator allows.
const MOST_DEVICES: u32 = 64;

/// The library to preload, as cargo names it.
const PRELOAD: &str = "libpinbuddy_cuda_sim.so";
/// The driver stub, as cargo names it and as the loader looks for it.
const DRIVER: (&str, &str) = ("libpinbuddy_cuda_driver_stub.so", "libcuda.so.1");

/// Replaces this process with the command, so that signals and its exit status are its own.
pub fn run(args: &cli::Sim) -> Result<()> {
    let (program, arguments) = args
        .command
        .split_first()
        .context("there is no command to run")?;
    let mut command = Simulator::build()?.command(program, args.devices)?;
    command.args(arguments);
    let quiet = env::var_os("PINBUDDY_SIM_QUIET").is_some_and(|it| it == "1");
    let say = |line: String| {
        if !quiet {
            eprintln!("{line}");
        }
    };
    match Torch::of(program, has_torch, &venv::with_fork()) {
        Torch::OnPath => {}
        Torch::Fork(folder) => {
            let shown = paths::show(&folder);
            say(format!(
                "no torch for the Python on PATH: {shown}/bin comes first"
            ));
            let path = before(folder.join("bin").as_os_str(), env::var_os("PATH"));
            command.env("PATH", path);
        }
        Torch::Nowhere => say(format!(
            "no torch for {program}: `cargo xtask venv` makes an environment with the fork, to be found here"
        )),
    }
    match replace(&mut command) {
        Ok(never) => match never {},
        Err(error) => Err(explain(&error, program).into()),
    }
}

/// Where a command finds torch.
#[derive(Debug, PartialEq, Eq)]
enum Torch {
    /// Where it would without us, or it is named by its path.
    OnPath,
    /// In this environment.
    Fork(PathBuf),
    /// A Python that has none, and no environment is there.
    Nowhere,
}

impl Torch {
    /// For a program; `has_torch` says whether an interpreter on PATH has it, and `forks` is the best
    /// environment first.
    fn of(program: &str, has_torch: impl Fn(&str) -> bool, forks: &[PathBuf]) -> Self {
        let is_python = program.starts_with("python");
        // Whatever else it runs finds its Python by that name, if any.
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

/// Whether an interpreter would find torch. Nothing of it is run.
fn has_torch(interpreter: &str) -> bool {
    const PROBE: &str =
        "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)";
    let output = Command::new(interpreter).args(["-c", PROBE]).output();
    output.is_ok_and(|it| it.status.success())
}

fn replace(command: &mut Command) -> std::io::Result<Infallible> {
    Err(command.exec())
}

fn explain(error: &std::io::Error, program: &str) -> crate::report::refusal::Refusal {
    let refusal = refuse(format!("{program} cannot be run")).found(error.to_string());
    match error.kind() {
        ErrorKind::NotFound => refusal
            .expected("a program on the PATH, or the path of one")
            .remedy("cargo xtask sim -- COMMAND, for instance: cargo xtask sim -- python3 -c 'import torch'"),
        ErrorKind::PermissionDenied => refusal
            .expected("a program that may be executed")
            .remedy(format!("chmod +x {program}, or name its interpreter first")),
        _ => refusal,
    }
}

/// The simulated runtime, ready to stand in front of the real one.
#[derive(Clone, Debug)]
pub struct Simulator {
    folder: PathBuf,
}

impl Simulator {
    /// Compiles the two libraries, where they are not current, and lays them out.
    pub fn build() -> Result<Self> {
        let messages = saying("building the simulated CUDA runtime", build)?;
        let folder = paths::target().join("cuda-sim");
        install(&cargo::library(&messages, PRELOAD)?, &folder.join(PRELOAD))?;
        install(
            &cargo::library(&messages, DRIVER.0)?,
            &folder.join(DRIVER.1),
        )?;
        Ok(Self { folder })
    }

    /// What to set for a command: variable and value. `devices` is how many GPUs it sees.
    pub fn env(&self, devices: u32) -> Result<[(&'static str, OsString); 3]> {
        if devices > MOST_DEVICES {
            return Err(refuse("that is more GPUs than the simulator has")
                .found(devices.to_string())
                .expected(format!("at most {MOST_DEVICES}"))
                .into());
        }
        let preload = self.folder.join(PRELOAD);
        Ok([
            (
                "LD_PRELOAD",
                before(preload.as_os_str(), env::var_os("LD_PRELOAD")),
            ),
            (
                "LD_LIBRARY_PATH",
                before(self.folder.as_os_str(), env::var_os("LD_LIBRARY_PATH")),
            ),
            ("PINBUDDY_SIM_DEVICES", devices.to_string().into()),
        ])
    }

    /// A command that sees so many simulated GPUs.
    pub fn command(&self, program: impl AsRef<OsStr>, devices: u32) -> Result<Command> {
        let mut command = Command::new(program);
        command.envs(self.env(devices)?);
        Ok(command)
    }
}

/// `first:rest`, or `first` alone.
fn before(first: &OsStr, rest: Option<OsString>) -> OsString {
    let mut value = first.to_owned();
    if let Some(rest) = rest.filter(|it| !it.is_empty()) {
        value.push(":");
        value.push(rest);
    }
    value
}

/// Runs cargo and returns its messages.
fn build() -> Result<String> {
    let shell = Shell::new()?;
    shell.change_dir(paths::root());
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = paths::target();
    let output = cmd!(
        shell,
        "{cargo} build --quiet --release --locked -p pinbuddy-cuda-sim -p pinbuddy-cuda-driver-stub
         --target-dir {target} --message-format json-render-diagnostics"
    )
    .quiet()
    .ignore_status()
    .output()
    .context("running cargo")?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(refuse("the simulated CUDA runtime does not compile")
        .found(String::from_utf8_lossy(&output.stderr).trim())
        .expected("tests/cuda-sim to compile")
        .remedy("cargo build --release -p pinbuddy-cuda-sim -p pinbuddy-cuda-driver-stub")
        .into())
}

/// Puts a library in place by a rename, so that who has the old one loaded keeps it.
fn install(from: &Path, to: &Path) -> Result<()> {
    let new = fs::read(from).with_context(|| format!("reading {}", from.display()))?;
    if fs::read(to).is_ok_and(|old| old == new) {
        return Ok(());
    }
    let scratch = Scratch::file(to)?;
    fs::write(scratch.path(), new).with_context(|| format!("writing {}", to.display()))?;
    scratch.publish(to)
}

/// Runs `work`, and says so where it takes more than two seconds.
fn saying<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let (done, finished) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let patience = Duration::from_secs(2);
            if finished.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("{what} …");
            }
        });
        let result = work();
        drop(done);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_before_stays_behind() {
        assert_eq!(before(OsStr::new("/a"), None), "/a");
        assert_eq!(before(OsStr::new("/a"), Some("".into())), "/a");
        assert_eq!(before(OsStr::new("/a"), Some("/b:/c".into())), "/a:/b:/c");
    }

    #[test]
    fn torch_is_found_on_path_or_else_in_the_forks_environment() {
        let forks = [PathBuf::from("/venv/2.15.0"), PathBuf::from("/venv/2.9.1")];
        let only = |name: &'static str| move |it: &str| it == name;
        let fork = Torch::Fork(forks[0].clone());
        for (program, with_torch, expected) in [
            ("python", "python", Torch::OnPath),
            ("python", "none", fork),
            ("/usr/bin/python3", "none", Torch::OnPath),
            ("torchrun", "python3", Torch::OnPath),
        ] {
            assert_eq!(Torch::of(program, only(with_torch), &forks), expected);
        }
        assert_eq!(
            Torch::of("torchrun", only("none"), &forks),
            Torch::Fork(forks[0].clone())
        );
        assert_eq!(Torch::of("python3.11", only("none"), &[]), Torch::Nowhere);
        assert_eq!(Torch::of("bash", only("none"), &[]), Torch::OnPath);
        assert!(!has_torch("/nowhere/python9"));
    }

    #[test]
    fn too_many_devices_are_refused() {
        let simulator = Simulator {
            folder: "/sim".into(),
        };
        assert!(
            simulator
                .env(65)
                .unwrap_err()
                .to_string()
                .contains("at most 64")
        );
        let [_, (_, libraries), (_, devices)] = simulator.env(2).unwrap();
        assert!(libraries.to_string_lossy().starts_with("/sim"));
        assert_eq!(devices, "2");
    }

    #[test]
    fn a_program_that_is_not_there() {
        let mut command = Command::new("/nowhere/python9");
        let Err(error) = replace(&mut command);
        insta::assert_snapshot!(explain(&error, "python9"), @"
        python9 cannot be run
          found     No such file or directory (os error 2)
          expected  a program on the PATH, or the path of one
          to do     cargo xtask sim -- COMMAND, for instance: cargo xtask sim -- python3 -c 'import torch'
        ");
    }
}
