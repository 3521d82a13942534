//! Compiles `pinbuddy-tools`, which travels in the wheel beside the library. It needs no torch, so one fits all releases,
//! and nothing of a build's preparation: cargo runs beside it.
//!
//! Invariant: no cargo outlives the build that has started it.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use xshell::{Shell, cmd};

use crate::compile::{Flavour, cleaned, rust_flags};
use xtask_support::cargo;
use xtask_support::refusal::refuse;

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
    pub fn start(root: &Path, target: &Path) -> Result<Self> {
        let shell = Shell::new()?;
        shell.change_dir(root);
        let command = cmd!(
            shell,
            "cargo build -p {PROGRAM} --profile wheel --locked --target-dir {target} --message-format json-render-diagnostics"
        );
        let flags = rust_flags(root, target, Flavour::Wheel).join("\x1f");
        let command = cleaned(command.env("CARGO_ENCODED_RUSTFLAGS", flags));
        let (said, complained) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let cargo = Command::from(command)
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
        let status = self.cargo.wait().context("waiting for cargo")?;
        if !status.success() {
            return Err(refuse(format!("{PROGRAM} does not compile"))
                .found(text(&mut self.complained)?.trim())
                .expected("tools to compile")
                .remedy(format!("cargo build -p {PROGRAM}"))
                .into());
        }
        cargo::executable(&text(&mut self.said)?, PROGRAM)
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        // Both fail once it has ended.
        let _ = self.cargo.kill();
        let _ = self.cargo.wait();
    }
}

fn text(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
