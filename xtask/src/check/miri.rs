//! Miri: undefined behaviour in what the engine's tests run. Needs a nightly toolchain.
//!
//! Where there is none, that the crates of `rust-core` forbid unsafe code shows nearly as much: the compiler then
//! refuses every line that could be undefined behaviour of ours, and what remains is the standard library's.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::Effort;
use super::row::Explored;
use crate::support::{paths, relay, tally};

/// Crates without unsafe code.
const CRATES: [&str; 4] = [
    "rust-core/engine",
    "rust-core/trace",
    "rust-core/replay",
    "cxx-bridge/machine",
];

/// The modules of the engine whose tests are small: the tree, the records, the arena. Tests of whole gibibytes would
/// take hours.
const MODULES: [&str; 10] = [
    "arena::",
    "buddy::",
    "cover::",
    "fill_order::",
    "gauge::",
    "node::",
    "phases::",
    "records::",
    "rounds::",
    "word::",
];

/// The check.
pub fn run(_effort: Effort) -> Result<Explored> {
    let forbidding = forbid_unsafe()?;
    let explored = Explored::default().figure("crates that forbid unsafe code", forbidding);
    if !is_there() {
        let remedy = "no Miri (rustup toolchain install nightly --component miri,rust-src)";
        return Ok(explored.instead(remedy));
    }
    let mut command = Command::new("cargo");
    command
        .current_dir(paths::root())
        .args(["+nightly", "miri", "test", "--package", "pinbuddy-core"])
        .args(["--lib", "--target-dir", "target/miri", "--"])
        .args(MODULES)
        // Tests of random cases keep what failed in files.
        .env("MIRIFLAGS", "-Zmiri-disable-isolation")
        .env("PROPTEST_CASES", "2");
    let (text, success) = relay::run(&mut command)?;
    let tally = tally::cargo(&text).checked(success);
    ensure!(tally.passed > 0, "Miri ran no test");
    ensure!(tally.failed == 0, "{} tests failed in Miri", tally.failed);
    Ok(explored.figure("tests in Miri", tally.passed as u64))
}

/// How many crates say so; an error names one that does not.
fn forbid_unsafe() -> Result<u64> {
    for folder in CRATES {
        let path = paths::root().join(folder).join("src/lib.rs");
        let text = fs::read_to_string(&path).with_context(|| format!("reading {folder}"))?;
        ensure!(
            text.contains("#![forbid(unsafe_code)]"),
            "{folder}/src/lib.rs does not forbid unsafe code"
        );
    }
    Ok(CRATES.len() as u64)
}

fn is_there() -> bool {
    let version = Command::new("cargo")
        .args(["+nightly", "miri", "--version"])
        .output();
    version.is_ok_and(|it| it.status.success())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_crates_that_need_no_unsafe_code_forbid_it() {
        super::forbid_unsafe().unwrap();
    }
}
