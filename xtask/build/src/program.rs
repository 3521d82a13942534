//! Compiles `pinbuddy-tools`, which travels in the wheel beside the library. It needs no torch, so one fits all releases,
//! and nothing of a build's preparation.
//!
//! Invariant: no cargo outlives the build that has started it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

use crate::compile::{Flavour, clean, compilers};
use xtask_support::cargo;

/// The crate, and the program's file name.
pub const PROGRAM: &str = "pinbuddy-tools";

/// Its path in a wheel.
pub const IN_WHEEL: &str = "pinbuddy/bin/pinbuddy-tools";

/// A cargo that compiles the program's crates, most of which the library has, too, while a wheel is fetched. What it
/// cannot compile is reported by who needs it. One that is dropped is stopped.
pub struct Ahead(Child);

impl Ahead {
    /// Starts it. `target` is the library's folder for cargo: whoever comes second waits.
    pub fn start(target: &Path) -> Result<Self> {
        // What is missing is said before anything begins.
        compilers()?;
        let mut command = cargo_build(target)?;
        command.arg("--lib").stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(command.spawn().context("running cargo")?))
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // Both fail once it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program's path; it is there at once if it was compiled beside a library in this folder.
pub fn compile(target: &Path) -> Result<PathBuf> {
    let output = cargo_build(target)?.output().context("running cargo")?;
    let again = format!("cargo build -p {PROGRAM}");
    let messages = cargo::messages(&output, PROGRAM, "tools", &again)?;
    cargo::built(&messages, PROGRAM)
}

/// The program is always as it is in wheels.
fn cargo_build(target: &Path) -> Result<Command> {
    let mut command = cargo::build(&[PROGRAM], "wheel");
    clean(&mut command, target, Flavour::Wheel)?;
    command.arg("--target-dir").arg(target);
    Ok(command)
}
