//! The results of `test-upstream --seam`, kept for the pull request.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::support::paths;
use crate::support::scratch::Scratch;
use xtask_patchkit::series::Patch;

/// A run without failures.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tested {
    /// The tested patches: hashes by name.
    patches: BTreeMap<String, String>,
    /// The libraries and the runtime: `torch 2.15.0+cu132, in the simulator`.
    pub on: String,
    /// A line for each program.
    pub results: Vec<String>,
}

fn file() -> PathBuf {
    paths::target().join("upstream/seam.json")
}

fn hashes(patches: &[Patch]) -> BTreeMap<String, String> {
    let each = patches
        .iter()
        .map(|it| (it.name.clone(), it.sha256.clone()));
    each.collect()
}

impl Tested {
    /// The results of a run on these patches.
    pub fn new(patches: &[Patch], on: String, results: Vec<String>) -> Self {
        Self {
            patches: hashes(patches),
            on,
            results,
        }
    }

    /// Saves it.
    pub fn write(&self) -> Result<()> {
        let scratch = Scratch::file(&file())?;
        fs::write(scratch.path(), serde_json::to_vec_pretty(self)?)
            .context("keeping the results")?;
        scratch.publish(&file())
    }

    /// The saved results, if they are for these patches.
    pub fn read(patches: &[Patch]) -> Option<Self> {
        let kept: Self = serde_json::from_slice(&fs::read(file()).ok()?).ok()?;
        (kept.patches == hashes(patches)).then_some(kept)
    }
}
