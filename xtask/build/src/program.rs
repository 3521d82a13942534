//! Compiles `pinbuddy-tools`, which travels in the wheel beside the library. It needs no torch, so one fits all releases,
//! and nothing of a build's preparation: cargo runs beside it.
//!
//! Invariant: no cargo outlives the build that has started it.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use anyhow::{Context as _, Result};

use crate::compile::{Flavour, clean, compilers};
use xtask_support::cargo;

/// The crate, and the program's file name.
pub const PROGRAM: &str = "pinbuddy-tools";

/// Its path in a wheel.
pub const IN_WHEEL: &str = "pinbuddy/bin/pinbuddy-tools";

/// A cargo that compiles the program; one that is dropped is stopped.
pub struct Compiling {
    cargo: Child,
    said: File,
    complained: File,
}

impl Compiling {
    /// Starts it. The program is always as it is in wheels. `target` is the library's folder for cargo: what both need is
    /// compiled once, and whoever comes second waits.
    pub fn start(target: &Path) -> Result<Self> {
        // What is missing is said before anything begins.
        compilers()?;
        let mut command = cargo::build(&[PROGRAM], "wheel");
        clean(&mut command, target, Flavour::Wheel)?;
        let (said, complained) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let cargo = command
            .arg("--target-dir")
            .arg(target)
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(complained.try_clone()?)
            .spawn()
            .context("running cargo")?;
        Ok(Self {
            cargo,
            said,
            complained,
        })
    }

    /// Waits for its end, and returns the program's path.
    pub fn wait(mut self) -> Result<PathBuf> {
        let output = Output {
            status: self.cargo.wait().context("waiting for cargo")?,
            stdout: all(&mut self.said)?,
            stderr: all(&mut self.complained)?,
        };
        let again = format!("cargo build -p {PROGRAM}");
        let messages = cargo::messages(&output, PROGRAM, "tools", &again)?;
        cargo::built(&messages, PROGRAM)
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        // Both fail once it has ended.
        let _ = self.cargo.kill();
        let _ = self.cargo.wait();
    }
}

fn all(file: &mut File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
