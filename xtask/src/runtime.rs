//! The CUDA runtime of a command: with `--real` this machine's, checked; otherwise the simulator, built.

use std::ffi::OsStr;
use std::io;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::programs;
use crate::python::simulator::Simulator;
use crate::sim;
use crate::support::paths;
use xtask_patchkit::release::Versions;

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

/// The simulator; if `real`, this machine's own, refused if `pinbuddy doctor` says that programs cannot pin memory here.
pub fn choose(real: bool) -> Result<Runtime> {
    if !real {
        return Ok(Runtime::Simulated(sim::build()?));
    }
    // The newest that a wheel here is for; no simulator can stand in.
    let cuda = Versions::read(paths::root())?.newest_cuda();
    let mut doctor = Command::new(programs::tools()?);
    doctor.args(["doctor", "--cuda", &cuda]);
    doctor.env_remove("PINBUDDY_SIM_DEVICES");
    let status = doctor.stdout(io::stderr()).status()?;
    ensure!(
        status.success(),
        "there is no GPU that programs can use here, for the reason above; without --real the simulator stands in for one"
    );
    Ok(Runtime::Real)
}
