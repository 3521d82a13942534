//! The workspace's Rust tests, by nextest, which writes JUnit (`.config/nextest.toml`).

use std::process::{Command, Stdio};

use anyhow::Result;

use super::{fork, pytest, simulator};
use crate::support::tally::Tally;
use crate::support::{cargo, lock, paths};

/// Uses nextest if it is installed, otherwise cargo's own runner. With `explores` there are more random programs.
pub fn whole(explores: bool) -> Result<Tally> {
    let variables = explores.then(|| (fork::ALL, "1".to_owned()));
    let arguments = ["--workspace", "--no-fail-fast"];
    if has_nextest() { nextest(&arguments, variables.as_slice()) } else { cargo_test(&arguments, variables.as_slice()) }
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
    // One file for all runs of this profile. nextest writes it here, wherever cargo's target folder is.
    let _lock = lock::take("nextest")?;
    let report = paths::root().join("target/nextest/xtask/junit.xml");
    let words = ["nextest", "run", "--profile", "xtask"];
    pytest::run(&mut command(&words, arguments, variables), &report)
}

/// Counts as one test, since cargo's runner has no report; as a failed one if it ran none.
fn cargo_test(arguments: &[&str], variables: &[(&str, String)]) -> Result<Tally> {
    eprintln!("counted as one test; `cargo install --locked cargo-nextest` has each of them counted, and is faster");
    let mut command = command(&["test"], arguments, variables);
    let output = command.stderr(Stdio::inherit()).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    eprint!("{said}");
    let is_one = |line: &str| line.starts_with("test ") && line.ends_with("... ok");
    let tally = match said.lines().any(is_one) {
        true => Tally::one(),
        false => Tally::default(),
    };
    Ok(tally.checked(output.status.success()))
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
