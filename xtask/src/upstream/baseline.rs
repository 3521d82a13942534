//! Caches the official wheel's outcomes in the simulator, by their inputs.
//!
//! Only outcomes that are explained are kept, so that a failure is always seen again.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::environment::Environment;
use super::outcome::Outcomes;
use super::python::Choice;
use crate::support::paths;
use crate::support::progress::Step;
use crate::support::stamp::Inputs;

/// What the outcomes of a choice of Python tests depend on.
pub fn inputs(environment: &Environment, choice: &Choice, requirements: &Path) -> Result<Inputs> {
    let mut inputs = environment
        .inputs()?
        .file(&choice.file)?
        .file(&paths::root().join("tests/upstream/run_tests.py"))?
        .text(&requirements.display().to_string())?;
    for names in [&choice.patterns, &choice.last, &choice.without] {
        inputs = inputs.text(&names.join(","))?;
    }
    for library in libraries(&paths::target().join("cuda-sim"))? {
        inputs = inputs.file(&library)?;
    }
    Ok(inputs)
}

/// The outcomes cached as `name`, or those of `run`, which are cached if `whole`.
pub fn outcomes(
    name: &str,
    inputs: Inputs,
    step: &Step,
    whole: impl FnOnce(&Outcomes) -> bool,
    run: impl FnOnce() -> Result<Outcomes>,
) -> Result<Outcomes> {
    let kept = paths::target().join(format!("upstream/{name}.json"));
    let mut found = None;
    let made = inputs.make(&kept, || {
        let outcomes = run()?;
        let whole = whole(&outcomes);
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
