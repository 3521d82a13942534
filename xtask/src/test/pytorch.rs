//! PyTorch's own tests, and client programs: `tests/upstream` and `tests/clients`, with stock and the fork.

use std::env;
use std::path::Path;

use anyhow::Result;

use super::{fork, pytest};
use crate::python::environment::Environment;
use crate::runtime::Runtime;
use crate::support::tally::Tally;
use crate::venv;

/// The imports of test_cuda.py and torch.testing besides torch.
const PACKAGES: [&str; 4] = ["expecttest", "hypothesis", "numpy", "psutil"];

/// Environments, the runtime, and a tree of PyTorch's tests.
#[derive(Debug)]
pub struct Pytorch<'a> {
    pub fork: &'a Environment,
    pub stock: &'a Environment,
    pub python: &'a Path,
    pub runtime: &'a Runtime,
    pub source: Option<&'a Path>,
    /// Whether to run what proves a release, too.
    pub all: bool,
}

impl Pytorch<'_> {
    /// Files of `tests/upstream`.
    pub fn own(&self, files: &[&str]) -> Result<Tally> {
        let include = venv::cuda_include(self.stock, self.python)?;
        let mut command = self.command("tests/upstream")?;
        command
            .arg("--packages")
            .arg(pytest::packages(self.python, &PACKAGES)?)
            .arg("--include")
            .arg(env::join_paths(include)?);
        if let Some(source) = self.source {
            command.arg("--source").arg(std::path::absolute(source)?);
        }
        if self.runtime.is_real() {
            command.arg("--real");
        }
        pytest::counted(command.args(files))
    }

    /// The clients that are quick and need torch alone.
    pub fn clients(&self) -> Result<Tally> {
        // With a folder: pytest looks for conftest.py, which has the options, beside what else it takes for a file.
        pytest::counted(self.command("tests/clients")?.args(["-m", "quick", "."]))
    }

    fn command(&self, folder: &str) -> Result<std::process::Command> {
        fork::require(self.fork, self.stock, self.python)?;
        let python = self.runtime.command(self.fork.python())?;
        let mut command = pytest::command(python, folder);
        command.arg("--stock").arg(self.stock.python());
        command.envs(self.all.then_some((fork::ALL, "1")));
        Ok(command)
    }
}
