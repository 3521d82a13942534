//! What the tests of the seam came to, as `test-upstream --seam` leaves it for the pull request.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::support::paths;
use crate::support::scratch::Scratch;
use xtask_patchkit::series::Patch;

/// A run in which nothing failed.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tested {
    /// What was tested: hashes by the patches' names.
    patches: BTreeMap<String, String>,
    /// With which libraries beside them, and where: `torch 2.15.0+cu132, in the simulator`.
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
    /// A run on these patches.
    pub fn new(patches: &[Patch], on: String, results: Vec<String>) -> Self {
        Self {
            patches: hashes(patches),
            on,
            results,
        }
    }

    /// Keeps it.
    pub fn write(&self) -> Result<()> {
        let scratch = Scratch::file(&file())?;
        fs::write(scratch.path(), serde_json::to_vec_pretty(self)?)
            .context("keeping the results")?;
        scratch.publish(&file())
    }

    /// The kept one, if it was of these patches.
    pub fn read(patches: &[Patch]) -> Option<Self> {
        let kept: Self = serde_json::from_slice(&fs::read(file()).ok()?).ok()?;
        (kept.patches == hashes(patches)).then_some(kept)
    }
}
