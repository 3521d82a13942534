//! The workspace's Rust tests, by nextest, which writes JUnit (`.config/nextest.toml`).

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::{pytest, simulator};
use crate::support::tally::Tally;
use crate::support::{cargo, paths};

/// Uses nextest if it is installed, otherwise cargo's own runner.
pub fn all() -> Result<Tally> {
    if has_nextest() {
        nextest(&["--workspace", "--no-fail-fast"], &[])
    } else {
        cargo_test(&["--workspace", "--no-fail-fast"], &[])
    }
}

/// Runs the ignored tests of one package, with the variables that they need.
pub fn ignored(package: &str, variables: &[(&str, String)]) -> Result<Tally> {
    if has_nextest() {
        // In the workspace: alone, the package would be recompiled, with fewer features of its dependencies.
        let of = format!("package({package})");
        let arguments = ["--workspace", "--run-ignored", "only", "-E", &of];
        nextest(&arguments, variables)
    } else {
        cargo_test(&["--package", package, "--", "--ignored"], variables)
    }
}

fn has_nextest() -> bool {
    let nextest = cargo::command().args(["nextest", "--version"]).output();
    nextest.is_ok_and(|output| output.status.success())
}

fn nextest(arguments: &[&str], variables: &[(&str, String)]) -> Result<Tally> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(paths::target, PathBuf::from);
    let report = target.join("nextest/default/junit.xml");
    let words = ["nextest", "run", "--profile", "default"];
    pytest::run(&mut command(&words, arguments, variables), &report)
}

/// Counts as one test, since cargo's runner has no report.
fn cargo_test(arguments: &[&str], variables: &[(&str, String)]) -> Result<Tally> {
    eprintln!(
        "counted as one test; `cargo install --locked cargo-nextest` has each of them counted, and is faster"
    );
    let status = command(&["test"], arguments, variables).status()?;
    Ok(Tally::one().checked(status.success()))
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
