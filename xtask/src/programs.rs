//! Programs of this checkout that commands are handed on to, compiled on demand, so that no other command waits for
//! them.

use std::convert::Infallible;
use std::env;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cli::Handed;
use crate::support::watch::saying;
use crate::support::{cargo, paths};

/// The users' program, as it is in wheels.
pub fn tools() -> Result<PathBuf> {
    ensure("pinbuddy-tools", "pinbuddy's tools")
}

/// What a run on a GPU asks the driver.
pub fn questions() -> Result<PathBuf> {
    ensure("pinbuddy-gpu-questions", "the questions for a GPU")
}

/// Compiles a program, which is called as its package, unless it is current; returns its path.
fn ensure(package: &str, what: &str) -> Result<PathBuf> {
    // With this program's own profile, so that `cargo run --release -p xtask -- bench` measures speeds.
    let profile = match cfg!(debug_assertions) {
        true => "dev",
        false => "release",
    };
    let output = saying(&format!("compiling {what}"), || {
        // Of the workspace: with the features of its tests, which then have compiled most of it.
        let mut command = cargo::build(&[], profile);
        let output = command.args(["--workspace", "--bin", package]).output();
        output.context("running cargo")
    })?;
    let again = format!("cargo build --package {package}");
    let messages = cargo::messages(&output, what, package, &again)?;
    cargo::built(&messages, package)
}

/// This program's path. Cargo may have built it anew meanwhile, in the same place.
pub fn own() -> Result<String> {
    let program = env::current_exe()?.display().to_string();
    Ok(program.trim_end_matches(" (deleted)").to_owned())
}

/// Hands a command of words on to `ci/NAME.py`, and replaces this process.
pub fn script(name: &str, words: &[&str], more: &Handed) -> Result<Infallible> {
    let mut command = Command::new("python3");
    command.arg(paths::root().join(format!("ci/{name}.py")));
    become_it(command.args(words).args(&more.words))
}

/// Replaces this process with a command.
pub fn become_it(command: &mut Command) -> Result<Infallible> {
    Err(command.exec()).with_context(|| format!("running {command:?}"))
}
