//! Where programs of a benchmark run: the environments, and the CUDA runtime in front of them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::cli;
use crate::report::refusal::refuse;
use crate::sim::Simulator;
use crate::venv;

/// Two environments and a CUDA runtime.
#[derive(Debug)]
pub struct Place {
    /// The folder of the environment with the official wheel.
    pub stock: PathBuf,
    /// The one with the fork.
    pub fork: PathBuf,
    /// `None`: the machine's own runtime.
    simulator: Option<Simulator>,
}

impl Place {
    /// Makes what is not there yet.
    pub fn prepare(args: &cli::Bench) -> Result<Self> {
        let environment = |at_hand: &Option<PathBuf>, stock: bool| match at_hand {
            Some(folder) => checked(folder, stock),
            None => venv::ensure(None, stock, &args.python),
        };
        Ok(Self {
            fork: environment(&args.fork, false)?,
            stock: environment(&args.stock, true)?,
            simulator: (!args.real).then(Simulator::build).transpose()?,
        })
    }

    /// Whether CUDA is simulated here.
    pub fn simulated(&self) -> bool {
        self.simulator.is_some()
    }

    /// A program that sees one GPU and none of the caller's settings.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        let mut command = match &self.simulator {
            Some(simulator) => simulator.command(program, 1)?,
            None => Command::new(program),
        };
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["BUDDY_", "PYTORCH_", "PYTHON"]
                .iter()
                .any(|ours| text.starts_with(ours))
            {
                command.env_remove(name);
            }
        }
        command.env("PINBUDDY_SIM_QUIET", "1");
        Ok(command)
    }
}

/// The interpreter of an environment.
pub fn python(environment: &Path) -> PathBuf {
    environment.join("bin/python")
}

fn checked(folder: &Path, stock: bool) -> Result<PathBuf> {
    if python(folder).exists() {
        return Ok(std::path::absolute(folder)?);
    }
    let remedy = if stock {
        "cargo xtask venv --stock"
    } else {
        "cargo xtask venv"
    };
    Err(
        refuse(format!("{} is no virtual environment", folder.display()))
            .expected(format!("{}", python(folder).display()))
            .remedy(format!("{remedy} makes one and prints its path"))
            .into(),
    )
}
