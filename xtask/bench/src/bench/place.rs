//! Where programs of a benchmark run: the environments, and the CUDA runtime in front of them.

use std::env;
use std::ffi::OsStr;
use std::process::Command;

use anyhow::Result;
use xtask_python::environment::{self, Environment};
use xtask_python::runtime::Runtime;

use super::peer::Memory;

/// Two environments and a CUDA runtime.
#[derive(Debug)]
pub struct Place {
    /// The environment with the official wheel.
    pub stock: Environment,
    /// The one with the fork.
    pub fork: Environment,
    /// What runs in front of them.
    pub runtime: Runtime,
}

impl Place {
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

    /// One of the two.
    pub fn environment(&self, fork: bool) -> &Environment {
        if fork { &self.fork } else { &self.stock }
    }

    /// The loader takes libtorch from that environment.
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
