//! The CUDA that programs of a test or a benchmark run on: simulated, or this machine's own.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::Result;

use crate::simulator::Simulator;

/// One of them, ready to use.
#[derive(Clone, Debug)]
pub enum Runtime {
    /// In front of the real one, with one GPU.
    Simulated(Simulator),
    /// The machine's, with all its GPUs.
    Real,
}

impl Runtime {
    /// A program on it.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        match self {
            Self::Simulated(simulator) => simulator.command(program, 1),
            Self::Real => Ok(Command::new(program)),
        }
    }

    /// For messages: `in the simulator`.
    pub fn place(&self) -> &'static str {
        match self {
            Self::Simulated(_) => "in the simulator",
            Self::Real => "on this machine",
        }
    }

    /// Whether CUDA is this machine's own.
    pub fn is_real(&self) -> bool {
        matches!(self, Self::Real)
    }
}
