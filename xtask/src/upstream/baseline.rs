//! Caches the official wheel's outcomes in the simulator, by their inputs.
//!
//! Only outcomes without errors are kept, so that a failure is always seen again.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::environment::Environment;
use super::outcome::{self, Outcomes};
use super::source::Source;
use crate::support::paths;
use crate::support::progress::Step;

/// The cached outcomes, or those of `run`. `program` is the C++ test.
pub fn outcomes(
    environment: &Environment,
    program: &Path,
    source: &Source,
    requirements: &Path,
    step: &Step,
    run: impl FnOnce() -> Result<Outcomes>,
) -> Result<Outcomes> {
    let mut inputs = environment
        .inputs()?
        .file(program)?
        .file(&source.python())?
        .file(&paths::root().join("tests/upstream/run_tests.py"))?
        .text(&requirements.display().to_string())?
        .text(&source.selection.patterns().join(","))?;
    for library in libraries(&paths::target().join("cuda-sim"))? {
        inputs = inputs.file(&library)?;
    }
    let kept = paths::target().join("upstream/stock.json");
    let mut found = None;
    let made = inputs.make(&kept, || {
        let outcomes = run()?;
        let whole = outcome::is_explained(&outcomes);
        fs::write(&kept, serde_json::to_vec(&outcomes)?)?;
        found = Some(outcomes);
        anyhow::ensure!(whole, "not to be kept");
        Ok(())
    });
    match found {
        Some(outcomes) => Ok(outcomes),
        None => {
            made?;
            step.note("as in an earlier run on the same inputs");
            let text = fs::read(&kept).with_context(|| format!("reading {}", kept.display()))?;
            Ok(serde_json::from_slice(&text)?)
        }
    }
}

/// The simulator.
fn libraries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    let mut files: Vec<_> = entries
        .map(|entry| entry.map(|it| it.path()))
        .collect::<std::io::Result<_>>()?;
    files.sort();
    Ok(files)
}
