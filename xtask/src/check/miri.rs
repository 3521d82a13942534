//! Miri: undefined behaviour in what the engine's tests run. Needs a nightly toolchain.
//!
//! Where there is none, that the crates of `rust-core` forbid unsafe code shows nearly as much: the compiler then
//! refuses every line that could be undefined behaviour of ours, and what remains is the standard library's.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::Effort;
use super::row::Explored;
use crate::support::{cargo, paths, relay, tally};

/// Crates without unsafe code.
const CRATES: [&str; 8] = [
    "rust-core/engine",
    "rust-core/trace",
    "rust-core/replay",
    "rust-core/snapshot",
    "rust-core/plan",
    "rust-core/slots",
    "rust-core/live",
    "cxx-bridge/machine",
];

/// The modules of the engine whose tests are small: the tree, the records, the arena. Tests of whole gibibytes would
/// take hours.
const MODULES: [&str; 9] = [
    "arena::",
    "buddy::",
    "cover::",
    "fill_order::",
    "gauge::",
    "node::",
    "phases::",
    "records::",
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
    let mut command = cargo::command();
    command
        .args(["+nightly", "miri", "test", "--package", "pinbuddy-core"])
        .args(["--lib", "--target-dir", "target/miri", "--"])
        .args(MODULES)
        // Tests of random cases keep what failed in files.
        .env("MIRIFLAGS", "-Zmiri-disable-isolation")
        .env("PROPTEST_CASES", "2");
    let (text, success) = relay::run(&mut command)?;
    let tally = tally::cargo(&text).checked(success);
    ensure!(tally.failed == 0, "{} tests failed in Miri", tally.failed);
    let missed = without_tests(&text);
    ensure!(
        missed.is_empty(),
        "Miri ran no test of {}: give each its new name in xtask/src/check/miri.rs, or leave it out",
        missed.join(", ")
    );
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

/// The modules of which the output, with lines like `test arena::tests::name ... ok`, has no test.
fn without_tests(text: &str) -> Vec<&'static str> {
    let tests: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("test "))
        .collect();
    let mut modules = MODULES.to_vec();
    modules.retain(|module| !tests.iter().any(|test| test.starts_with(module)));
    modules
}

fn is_there() -> bool {
    let version = cargo::command()
        .args(["+nightly", "miri", "--version"])
        .output();
    version.is_ok_and(|it| it.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crates_that_need_no_unsafe_code_forbid_it() {
        forbid_unsafe().unwrap();
    }

    #[test]
    fn each_module_is_one_of_the_engines() {
        let path = paths::root().join("rust-core/engine/src/lib.rs");
        let text = fs::read_to_string(path).unwrap();
        for module in MODULES {
            let declared = format!("\nmod {};\n", module.trim_end_matches("::"));
            assert!(text.contains(&declared), "{module}");
        }
    }

    #[test]
    fn a_module_without_tests_is_named() {
        let line = |module: &&str| format!("test {module}tests::it_works ... ok\n");
        let all: String = MODULES.iter().map(line).collect();
        assert!(without_tests(&all).is_empty());
        let renamed = all.replace("test phases::", "test engine::phases::");
        assert_eq!(without_tests(&renamed), ["phases::"]);
    }
}
