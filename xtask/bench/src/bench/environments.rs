//! The environments that programs of a benchmark run in, and their CUDA runtime.

use std::env;
use std::ffi::OsStr;
use std::process::Command;

use anyhow::Result;
use xtask_python::environment::{self, Environment};
use xtask_python::runtime::Runtime;

use super::subject::Memory;

#[derive(Debug)]
pub struct Environments {
    /// The environment with the official wheel.
    pub stock: Environment,
    /// The environment with the fork.
    pub fork: Environment,
    /// The CUDA runtime of both.
    pub runtime: Runtime,
}

impl Environments {
    /// The cheapest kind of pinned memory: only counted if CUDA is simulated.
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

    /// A command that sees one GPU and none of the caller's settings.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        let mut command = self.runtime.command(program)?;
        environment::clear_settings(&mut command);
        Ok(command)
    }

    /// The environment with the fork or with stock.
    pub fn environment(&self, fork: bool) -> &Environment {
        if fork { &self.fork } else { &self.stock }
    }

    /// Makes the loader take libtorch from that environment.
    pub fn use_libtorch(&self, command: &mut Command, fork: bool) -> Result<()> {
        let mut folders = vec![self.environment(fork).torch().join("lib")];
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

/// How many cores this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
