//! The CUDA runtime of a command: with `--real` this machine's, checked; otherwise the simulator, built.

use std::path::Path;

use anyhow::Result;

pub use crate::python::runtime::Runtime;
use crate::{doctor, sim};

/// This machine's own if `real`, refused if it has no usable GPU; otherwise the simulator.
pub fn choose(real: bool, python: &Path) -> Result<Runtime> {
    if real {
        doctor::require_gpu(python)?;
        return Ok(Runtime::Real);
    }
    Ok(Runtime::Simulated(sim::build()?))
}
