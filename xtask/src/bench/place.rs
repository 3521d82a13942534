//! Where programs of a benchmark run: the environments, and the CUDA runtime in front of them.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::peer::Memory;
use crate::cli;
use crate::report::refusal::refuse;
use crate::runtime::Runtime;
use crate::sim::Simulator;
use crate::upstream::environment;
use crate::venv;

/// Two environments and a CUDA runtime.
#[derive(Debug)]
pub struct Place {
    /// The folder of the environment with the official wheel.
    pub stock: PathBuf,
    /// The one with the fork.
    pub fork: PathBuf,
    runtime: Runtime,
}

impl Place {
    /// Makes what is not there yet.
    pub fn prepare(args: &cli::Bench) -> Result<Self> {
        let environment = |at_hand: &Option<PathBuf>, stock: bool| match at_hand {
            Some(folder) => checked(folder, stock),
            None => venv::ensure(None, stock, &args.python),
        };
        // First what can be missing.
        let runtime = Runtime::choose(args.real, &args.python)?;
        Ok(Self {
            fork: environment(&args.fork, false)?,
            stock: environment(&args.stock, true)?,
            runtime,
        })
    }

    /// With environments that are there.
    pub fn simulated_with(stock: &Path, fork: &Path) -> Result<Self> {
        Ok(Self {
            stock: stock.to_owned(),
            fork: fork.to_owned(),
            runtime: Runtime::Simulated(Simulator::build()?),
        })
    }

    /// What pinned memory can be without harm: counted where CUDA is simulated.
    pub fn lightest(&self) -> Memory {
        if self.simulated() {
            Memory::Counted
        } else {
            Memory::Locked
        }
    }

    /// Whether CUDA is simulated here.
    pub fn simulated(&self) -> bool {
        !self.runtime.is_real()
    }

    /// A program that sees one GPU and none of the caller's settings.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        let mut command = self.runtime.command(program)?;
        environment::clear_settings(&mut command);
        Ok(command)
    }
}

impl Place {
    /// The package's folder in one of the environments.
    pub fn torch(&self, fork: bool) -> Result<PathBuf> {
        torch_in(if fork { &self.fork } else { &self.stock })
    }

    /// The loader takes libtorch from that environment.
    pub fn use_libtorch(&self, command: &mut Command, fork: bool) -> Result<()> {
        let mut folders = vec![self.torch(fork)?.join("lib")];
        let set = command
            .get_envs()
            .find(|(name, _)| *name == "LD_LIBRARY_PATH")
            .and_then(|(_, value)| value.map(OsStr::to_owned))
            .or_else(|| env::var_os("LD_LIBRARY_PATH"));
        folders.extend(set.iter().flat_map(env::split_paths));
        command.env("LD_LIBRARY_PATH", env::join_paths(folders)?);
        Ok(())
    }
}

/// The package's folder in an environment.
pub fn torch_in(environment: &Path) -> Result<PathBuf> {
    let lib = environment.join("lib");
    fs::read_dir(&lib)
        .with_context(|| format!("listing {}", lib.display()))?
        .flatten()
        .map(|python| python.path().join("site-packages/torch"))
        .find(|torch| torch.is_dir())
        .ok_or_else(|| {
            refuse(format!("there is no torch in {}", environment.display()))
                .remedy("cargo xtask venv [--stock] makes one that has it, and prints its path")
                .into()
        })
}

/// How many cores this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
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
