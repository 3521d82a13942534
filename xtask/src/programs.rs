//! Programs of this checkout that commands are handed on to, compiled on demand, so that no other command waits for
//! them.

use std::convert::Infallible;
use std::env;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::sim::saying;
use crate::support::refusal::refuse;
use crate::support::{cargo, paths};

/// A program, which is called as its package.
pub struct Program {
    package: &'static str,
    /// In words.
    what: &'static str,
}

/// The users' program, as it is in wheels.
pub const TOOLS: Program = Program {
    package: "pinbuddy-tools",
    what: "pinbuddy's tools",
};

/// What a run on a GPU asks the driver.
pub const QUESTIONS: Program = Program {
    package: "pinbuddy-gpu-questions",
    what: "the questions for a GPU",
};

impl Program {
    /// Compiles it unless it is current; returns its path.
    pub fn ensure(&self) -> Result<PathBuf> {
        let what = format!("compiling {}", self.what);
        let messages = saying(&what, || self.compile())?;
        cargo::executable(&messages, self.package)
    }

    fn compile(&self) -> Result<String> {
        let shell = Shell::new()?;
        shell.change_dir(paths::root());
        let (cargo, package) = (
            env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
            self.package,
        );
        // With this program's own profile, so that `cargo run --release -p xtask -- bench` measures speeds.
        let profile = if cfg!(debug_assertions) {
            "dev"
        } else {
            "release"
        };
        let output = cmd!(
            shell,
            "{cargo} build --quiet --locked --profile {profile} --package {package}
             --message-format json-render-diagnostics"
        );
        let output = output.quiet().ignore_status().output();
        let output = output.context("running cargo")?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(refuse(format!("{} does not compile", self.what))
            .found(String::from_utf8_lossy(&output.stderr).trim())
            .expected(format!("{package} to compile"))
            .remedy(format!("cargo build --package {package}"))
            .into())
    }
}

/// Replaces this process with a command.
pub fn become_it(mut command: Command) -> Result<Infallible> {
    Err(command.exec()).with_context(|| format!("running {command:?}"))
}
