//! Miri: undefined behaviour in what tests of the engine, of slots and of the spin lock run. Needs a nightly toolchain.
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

/// Packages, their folders, and the modules whose tests are small. Tests of whole gibibytes would take hours. The bridge has
/// unsafe code, most of it for calls to the system, which Miri does not know; its spin lock has orderings, of which Miri
/// tries what weakly ordered memory would show.
const PACKAGES: [(&str, &str, &[&str]); 3] = [
    (
        "pinbuddy-core",
        "rust-core/engine",
        &[
            "arena::",
            "buddy::",
            "cover::",
            "fill_order::",
            "gauge::",
            "node::",
            "phases::",
            "policy::",
            "provision::ahead::",
            "provision::grow::",
            "provision::pace::",
            "provision::permits::",
            "provision::warm::",
            "records::",
            "segment::",
            "word::",
        ],
    ),
    (
        "pinbuddy-slots",
        "rust-core/slots",
        &["align::", "seeded::"],
    ),
    ("pinbuddy-bridge", "cxx-bridge", &["lock::spin::"]),
];

/// The check.
pub fn run(_effort: Effort) -> Result<Explored> {
    let forbidding = forbid_unsafe()?;
    let mut explored = Explored::default().figure("crates that forbid unsafe code", forbidding);
    if !is_there() {
        let remedy = "no Miri (rustup toolchain install nightly --component miri,rust-src)";
        return Ok(explored.instead(remedy));
    }
    for (package, _, modules) in PACKAGES {
        let passed = tests(package, modules)?;
        explored = explored.figure(format!("tests of {package} in Miri"), passed);
    }
    Ok(explored)
}

/// Runs a package's; how many passed.
fn tests(package: &str, modules: &[&str]) -> Result<u64> {
    let mut command = cargo::command();
    command
        .args(["+nightly", "miri", "test", "--package", package])
        .args(["--lib", "--target-dir", "target/miri", "--"])
        .args(modules)
        // Tests of random cases keep what failed in files.
        .env("MIRIFLAGS", "-Zmiri-disable-isolation")
        .env("PROPTEST_CASES", "2");
    let (text, success) = relay::run(&mut command)?;
    let tally = tally::cargo(&text).checked(success);
    ensure!(
        tally.failed == 0,
        "{} tests of {package} failed in Miri",
        tally.failed
    );
    let missed = without_tests(&text, modules);
    ensure!(
        missed.is_empty(),
        "Miri ran no test of {} in {package}: give each its new name in xtask/src/check/miri.rs, or leave it out",
        missed.join(", ")
    );
    Ok(tally.passed as u64)
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
fn without_tests<'a>(text: &str, modules: &[&'a str]) -> Vec<&'a str> {
    let tests: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("test "))
        .collect();
    let mut modules = modules.to_vec();
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
    fn each_module_is_one_of_its_crate() {
        for (package, folder, modules) in PACKAGES {
            let path = paths::root().join(folder).join("src/lib.rs");
            let text = fs::read_to_string(path).unwrap();
            for module in modules {
                let (first, _) = module.split_once("::").unwrap();
                let declared = format!("\nmod {first};\n");
                assert!(text.contains(&declared), "{module} of {package}");
            }
        }
    }

    #[test]
    fn a_module_without_tests_is_named() {
        let line = |module: &&str| format!("test {module}tests::it_works ... ok\n");
        for (_, _, modules) in PACKAGES {
            let all: String = modules.iter().map(line).collect();
            assert!(without_tests(&all, modules).is_empty());
            let last = *modules.last().unwrap();
            let renamed = all.replace(&format!("test {last}"), &format!("test other::{last}"));
            assert_eq!(without_tests(&renamed, modules), [last]);
        }
    }
}
