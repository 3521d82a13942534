//! The CUDA runtime of test and benchmark programs: simulated or real.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::Result;

use crate::simulator::Simulator;

/// A CUDA runtime, ready to use.
#[derive(Clone, Debug)]
pub enum Runtime {
    /// The simulator, with one GPU.
    Simulated(Simulator),
    /// The machine's own, with all its GPUs.
    Real,
}

impl Runtime {
    /// A command that runs `program` on this runtime.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        match self {
            Self::Simulated(simulator) => simulator.command(program, 1),
            Self::Real => Ok(Command::new(program)),
        }
    }

    /// Whether this is the machine's own CUDA.
    pub fn is_real(&self) -> bool {
        matches!(self, Self::Real)
    }
}
