//! Which CUDA a command uses: what `--real` asks for, checked, or the simulator, built.

use std::path::Path;

use anyhow::Result;

pub use crate::python::runtime::Runtime;
use crate::{doctor, sim};

/// The machine's own where `real` asks for it, refused where that has no GPU to use.
pub fn choose(real: bool, python: &Path) -> Result<Runtime> {
    if real {
        doctor::require_gpu(python)?;
        return Ok(Runtime::Real);
    }
    Ok(Runtime::Simulated(sim::build()?))
}
