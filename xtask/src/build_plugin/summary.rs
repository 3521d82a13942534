//! The closing summary of `build-plugin`, for people and, with `--json`, for scripts.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::Library;
use crate::build_wheel;
use crate::build_wheel::summary::StepTime;
use crate::support::typed;

/// The results of a build.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// The wheel.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Of the whole file.
    pub sha256: String,
    /// Our version.
    pub version: String,
    /// Its libraries.
    pub libraries: Vec<For>,
    /// The checkout's commit, if it has no uncommitted changes.
    pub commit: Option<String>,
    /// Seconds by step, in order.
    pub steps: Vec<StepTime>,
}

/// One library.
#[derive(Debug, Serialize)]
pub struct For {
    /// `torch.__version__` of the official wheel.
    pub torch: String,
    /// Hash of the library, which equals the fork wheel's made from the same inputs.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
    /// The newest symbol versions that it needs.
    pub needs: String,
}

impl Summary {
    pub(super) fn new(
        path: &Path,
        sha256: String,
        libraries: &[Library],
        times: Vec<(String, Duration)>,
    ) -> Result<Self> {
        let libraries = libraries.iter().map(|it| For {
            torch: it.provenance.torch_version.clone(),
            sha256: it.provenance.library_sha256.clone(),
            bytes: it.bytes.len() as u64,
            needs: it.floors.to_string(),
        });
        Ok(Self {
            path: path.to_path_buf(),
            bytes: fs::metadata(path)?.len(),
            sha256,
            version: env!("CARGO_PKG_VERSION").into(),
            libraries: libraries.collect(),
            commit: build_wheel::commit(),
            steps: StepTime::list(times),
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.path.display())?;
        writeln!(f, "  size     {} KiB", self.bytes.div_ceil(1024))?;
        writeln!(f, "  SHA-256  {}", self.sha256)?;
        for it in &self.libraries {
            let size = it.bytes.div_ceil(1024);
            writeln!(
                f,
                "  torch    {} ({size} KiB, needs {})",
                it.torch, it.needs
            )?;
        }
        StepTime::write_all(&self.steps, f)?;
        let wheel = typed::quoted(&self.path.display().to_string());
        writeln!(f, "To install it: pip install {wheel}")
    }
}
