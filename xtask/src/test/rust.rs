//! The workspace's Rust tests.

use std::process::Command;

use anyhow::Result;

use super::simulator;
use crate::support::tally::{self, Tally};
use crate::support::{cargo, relay};

/// Uses nextest if it is installed, otherwise cargo's own runner.
pub fn all() -> Result<Tally> {
    if has_nextest() {
        nextest(&["--workspace", "--no-fail-fast"], &[])
    } else {
        cargo_test(&["--workspace", "--no-fail-fast"], &[])
    }
}

/// Runs the ignored tests of one package, with the variables that they need. Its other tests are not counted as
/// skipped in this row.
pub fn ignored(package: &str, variables: &[(&str, String)]) -> Result<Tally> {
    let tally = if has_nextest() {
        // In the workspace: alone, the package would be recompiled, with fewer features of its dependencies.
        let of = format!("package({package})");
        let arguments = ["--workspace", "--run-ignored", "only", "-E", &of];
        nextest(&arguments, variables)
    } else {
        cargo_test(&["--package", package, "--", "--ignored"], variables)
    };
    tally.map(|tally| Tally {
        skipped: 0,
        ..tally
    })
}

fn has_nextest() -> bool {
    let nextest = cargo::command().args(["nextest", "--version"]).output();
    nextest.is_ok_and(|output| output.status.success())
}

fn nextest(arguments: &[&str], variables: &[(&str, String)]) -> Result<Tally> {
    let (text, success) = relay::run(&mut command(&["nextest", "run"], arguments, variables))?;
    Ok(tally::nextest(&text).checked(success))
}

fn cargo_test(arguments: &[&str], variables: &[(&str, String)]) -> Result<Tally> {
    let (text, success) = relay::run(&mut command(&["test"], arguments, variables))?;
    Ok(tally::cargo(&text).checked(success))
}

fn command(runner: &[&str], arguments: &[&str], variables: &[(&str, String)]) -> Command {
    let mut command = cargo::command();
    command
        .args(runner)
        .args(arguments)
        // Snapshots are only compared, whatever the caller's environment says.
        .env("INSTA_UPDATE", "no")
        .env("INSTA_FORCE_PASS", "0")
        // An input of compiling bindgen: the same in every row, so that it is compiled once.
        .env("LIBCLANG_PATH", simulator::libclang())
        .envs(variables.iter().map(|(name, value)| (name, value)));
    command
}
