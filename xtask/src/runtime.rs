//! The CUDA runtime of a command: with `--real` this machine's, checked; otherwise the simulator, built.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::programs::TOOLS;
use crate::python::simulator::Simulator;
use crate::sim;
use crate::support::paths;
use crate::support::refusal::refuse;
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

/// This machine's own if `real`, refused if it has no usable GPU; otherwise the simulator.
pub fn choose(real: bool) -> Result<Runtime> {
    if real {
        require_gpu(&TOOLS.ensure()?)?;
        return Ok(Runtime::Real);
    }
    Ok(Runtime::Simulated(sim::build()?))
}

/// What `pinbuddy doctor` says of this machine, if programs cannot pin memory here.
fn require_gpu(tools: &Path) -> Result<()> {
    // The newest that a wheel here is for; no simulator can stand in.
    let cuda = Versions::read(paths::root())?.newest_cuda();
    let doctor = Command::new(tools)
        .args(["doctor", "--cuda", &cuda])
        .env_remove("PINBUDDY_SIM_DEVICES")
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("running {}", tools.display()))?;
    if doctor.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&doctor.stdout);
    Err(refuse("there is no GPU that programs can use here")
        .found(said.trim_end())
        .expected("an NVIDIA driver that serves torch's CUDA, and a GPU")
        .remedy("what is missing is said above; without --real the simulator stands in for a GPU")
        .into())
}
