//! Compiles `pinbuddy-tools`, which travels in the wheel beside the library. It needs no torch, so one fits all releases.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use xshell::{Shell, cmd};

use crate::compile::{Flavour, cleaned, rust_flags};
use xtask_support::cargo;
use xtask_support::progress::Step;
use xtask_support::refusal::refuse;

/// The crate, and the program's file name.
pub const PROGRAM: &str = "pinbuddy-tools";

/// Its path in a wheel.
pub const IN_WHEEL: &str = "pinbuddy/bin/pinbuddy-tools";

/// Builds the program, always as it is in wheels, and returns its path.
pub fn compile(root: &Path, target: &Path, step: &Step) -> Result<PathBuf> {
    let shell = Shell::new()?;
    shell.change_dir(root);
    let command = cmd!(
        shell,
        "cargo build -p {PROGRAM} --profile wheel --locked --target-dir {target} --message-format json-render-diagnostics"
    );
    step.say("cargo build, the program");
    let flags = rust_flags(root, target, Flavour::Wheel).join("\x1f");
    let output = cleaned(command.env("CARGO_ENCODED_RUSTFLAGS", flags))
        .quiet()
        .ignore_status()
        .output()
        .context("running cargo")?;
    if !output.status.success() {
        return Err(refuse(format!("{PROGRAM} does not compile"))
            .found(String::from_utf8_lossy(&output.stderr).trim())
            .expected("tools to compile")
            .remedy(format!("cargo build -p {PROGRAM}"))
            .into());
    }
    cargo::executable(&String::from_utf8_lossy(&output.stdout), PROGRAM)
}
