//! Python tests of the fork, in the simulator or on a real GPU.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{Ready, pytest};
use crate::python::environment::Environment;
use crate::support::tally::Tally;
use crate::venv;

/// A set of tests, by their marks (`tests/python/conftest.py`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// All tests that measure no time, with a library that asserts.
    Behaviour,
    /// Of these, the tests that depend on the released library, or on torch being a fork.
    Release,
    /// The tests that measure time, run alone.
    Timing,
}

impl Pass {
    /// pytest's mark expression. `Behaviour` is the complement of `Timing`, so no test is missed; with `all` the released library
    /// has all tests, too.
    fn marks(self, all: bool) -> &'static str {
        match self {
            Self::Release if !all => "release and not timing",
            Self::Behaviour | Self::Release => "not timing",
            Self::Timing => "timing",
        }
    }
}

/// The variable with which tests that are slow or explore run, too, and programs start instead of being forked.
pub const ALL: &str = "PINBUDDY_TEST_ALL";

/// pytest in the fork's environment: `pass`, with timing tests alone.
pub fn python_tests(pass: Pass, ready: &Ready<'_>) -> Result<Tally> {
    let mut tally = Tally::default();
    for pass in [pass, Pass::Timing] {
        tally.add(run(pass, ready, &ready.fork, |command| {
            command.env_remove("PINBUDDY_EXPECT_DEBUG");
        })?);
    }
    Ok(tally)
}

/// The fork's environment, with the tests' requirements.
pub fn environment(torch: Option<&str>, python: &Path) -> Result<Environment> {
    let fork = venv::ensure(torch, false, python)?;
    venv::require(&fork, python, &["pytest", "pytest-xdist", "pyyaml"])?;
    Ok(fork)
}

/// pytest on `tests/python` in an environment with our library; `adjust` changes the command.
pub fn run(pass: Pass, ready: &Ready<'_>, environment: &Path, adjust: impl FnOnce(&mut Command)) -> Result<Tally> {
    let (runtime, all) = (&ready.runtime, ready.all);
    let python = runtime.command(environment.join("bin/python"))?;
    let real = if runtime.is_real() { "1" } else { "0" };
    let mut command = pytest::command(python, "tests/python");
    command
        .args(["-m", pass.marks(all)])
        .envs(all.then_some((ALL, "1")))
        .env("PINBUDDY_TEST_REAL", real)
        .env("PINBUDDY_STOCK_PYTHON", ready.stock.python());
    if pass != Pass::Timing {
        // More processes than cores, since tests mostly wait and start up. One that has nothing left to do takes another's
        // tests, behind one that takes minutes, too.
        command.args(["--numprocesses", "3", "--dist", "worksteal"]);
    }
    adjust(&mut command);
    pytest::counted(&mut command)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::support::paths;

    #[test]
    fn a_test_measures_time_or_is_in_the_pass_of_all_others() {
        let timing = Pass::Timing.marks(false);
        for pass in [Pass::Behaviour, Pass::Release] {
            assert_eq!(pass.marks(true), format!("not {timing}"));
        }
        assert_eq!(Pass::Behaviour.marks(false), format!("not {timing}"));
        let configuration = paths::root().join("tests/python/conftest.py");
        let text = fs::read_to_string(configuration).unwrap();
        for mark in [timing, "release", "slow(why)"] {
            assert!(text.contains(&format!("\"{mark}: ")), "{mark}");
        }
    }
}
