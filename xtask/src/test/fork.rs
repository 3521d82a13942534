//! The fork under real PyTorch, with the simulated CUDA in front or on a real GPU.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::runtime::Runtime;
use crate::support::scratch::Scratch;
use crate::support::tally::{self, Tally};
use crate::support::{paths, relay};
use crate::venv;

/// Which tests run together, by their marks (`tests/python/conftest.py`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// All that measure no time: what the allocator does, with a library that asserts.
    Behaviour,
    /// Of these, the ones that depend on the library being the released one, or on torch being a fork.
    Release,
    /// Those that measure time, with nothing beside them.
    Timing,
}

impl Pass {
    const TIMING: &str = "timing";

    /// pytest's expression. `Behaviour` is all that `Timing` is not, so no test is in neither.
    fn marks(self) -> String {
        let timing = Self::TIMING;
        match self {
            Self::Behaviour => format!("not {timing}"),
            Self::Release => format!("release and not {timing}"),
            Self::Timing => timing.to_owned(),
        }
    }
}

/// pytest in the fork's environment: `pass`, and what measures time by itself.
pub fn python_tests(
    pass: Pass,
    fork: &Path,
    stock: &Path,
    python: &Path,
    runtime: &Runtime,
) -> Result<Tally> {
    require(fork, stock, python)?;
    let mut tally = Tally::default();
    for pass in [pass, Pass::Timing] {
        tally.add(pytest(pass, fork, stock, runtime, |command| {
            command.env_remove("PINBUDDY_EXPECT_DEBUG");
        })?);
    }
    Ok(tally)
}

/// Installs what the tests need besides torch.
pub fn require(fork: &Path, stock: &Path, python: &Path) -> Result<()> {
    venv::require(fork, python, &["pytest", "pytest-xdist", "numpy"])?;
    venv::require(stock, python, &["numpy"])
}

/// pytest on `tests/python` in an environment with our library, as `adjust` would have it.
pub fn pytest(
    pass: Pass,
    environment: &Path,
    stock: &Path,
    runtime: &Runtime,
    adjust: impl FnOnce(&mut Command),
) -> Result<Tally> {
    let report = Scratch::file(&paths::target().join("wheel/pytest.xml"))?;
    let mut command = runtime.command(environment.join("bin/python"))?;
    command
        .current_dir(paths::root().join("tests/python"))
        .args(["-m", "pytest", "--color=auto", "-p", "no:cacheprovider"])
        .args(["--strict-markers", "-m", &pass.marks()])
        .arg("--junitxml")
        .arg(report.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env(
            "PINBUDDY_TEST_REAL",
            if runtime.is_real() { "1" } else { "0" },
        )
        .env("PINBUDDY_STOCK_PYTHON", stock.join("bin/python"));
    if pass != Pass::Timing {
        // Most of each test is waiting and starting up.
        command.args(["--numprocesses", "2"]);
    }
    adjust(&mut command);
    let (_, success) = relay::run(&mut command)?;
    let text = fs::read_to_string(report.path()).context("pytest wrote no report")?;
    Ok(tally::junit(&text)?.checked(success))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_measures_time_or_is_in_the_pass_of_all_others() {
        let timing = Pass::Timing.marks();
        assert_eq!(Pass::Behaviour.marks(), format!("not {timing}"));
        assert_eq!(Pass::Release.marks(), format!("release and not {timing}"));
        let configuration = paths::root().join("tests/python/conftest.py");
        let text = fs::read_to_string(configuration).unwrap();
        for mark in [timing.as_str(), "release"] {
            assert!(text.contains(&format!("\"{mark}: ")), "{mark}");
        }
    }
}
