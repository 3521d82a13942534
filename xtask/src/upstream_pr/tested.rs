//! The results of `tests/upstream/test_seam.py`, which keeps them for the pull request.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;

use crate::support::paths;
use xtask_patchkit::series::Patch;

/// A run without failures.
#[derive(Debug, Deserialize)]
pub struct Tested {
    /// The tested patches: hashes by name.
    patches: BTreeMap<String, String>,
    /// The libraries and the runtime: `torch 2.15.0+cu132, in the simulator`.
    pub on: String,
    /// A line for each program.
    pub results: Vec<String>,
}

impl Tested {
    /// The kept results, if they are for these patches.
    pub fn read(patches: &[Patch]) -> Option<Self> {
        let file = paths::target().join("upstream/seam.json");
        let kept: Self = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
        let hashes = patches.iter().map(|it| (&it.name, &it.sha256));
        hashes.eq(kept.patches.iter()).then_some(kept)
    }
}
