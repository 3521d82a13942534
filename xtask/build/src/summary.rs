//! The closing summary of a build, for people and, with `--json`, for scripts.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;

use crate::commit;
use xtask_support::progress::StepTime;
use xtask_support::typed;
use xtask_wheel::platform::Floors;

/// The results of a build.
#[derive(Debug, Serialize)]
pub struct Summary<Of = Fork> {
    /// The wheel.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Of the whole file.
    pub sha256: String,
    /// Its version: of a fork, `torch.__version__`.
    pub version: String,
    /// What this kind of wheel has.
    #[serde(flatten)]
    pub of: Of,
    /// The checkout's commit, if it has no uncommitted changes.
    pub commit: Option<String>,
    /// Seconds by step, in order.
    pub steps: Vec<StepTime>,
    /// The command that installs the wheel.
    pub install: String,
}

/// What a kind of wheel has besides, which people read as lines with labels.
pub trait Lines: Serialize {
    /// The labels, and what stands behind them.
    fn lines(&self) -> Vec<(&'static str, String)>;
}

/// Of a fork wheel.
#[derive(Debug, Serialize)]
pub struct Fork {
    /// The applied series.
    pub series: String,
    /// The newest symbol versions that our libraries need.
    pub floors: Floors,
    /// The platform tag.
    pub tag: String,
    /// Of libtorch_pinbuddy.so.
    pub library_bytes: u64,
}

impl Lines for Fork {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let kib = self.library_bytes.div_ceil(1024);
        vec![
            ("series", self.series.clone()),
            ("needs", self.floors.to_string()),
            ("tag", self.tag.clone()),
            ("library", format!("{kib} KiB")),
        ]
    }
}

impl<Of: Lines> Summary<Of> {
    /// Of a finished wheel, which that interpreter installs.
    pub fn new(
        (path, sha256): (PathBuf, String),
        version: String,
        of: Of,
        steps: Vec<StepTime>,
        python: &Path,
    ) -> Result<Self> {
        Ok(Self {
            bytes: fs::metadata(&path)?.len(),
            install: install(python, &path),
            path,
            sha256,
            version,
            of,
            commit: commit(),
            steps,
        })
    }

    /// Prints it.
    pub fn print(&self, as_json: bool) -> Result<()> {
        match as_json {
            true => println!("{}", serde_json::to_string_pretty(self)?),
            false => print!("\n{self}"),
        }
        Ok(())
    }
}

fn install(python: &Path, wheel: &Path) -> String {
    let words = [python, wheel].map(|it| typed::quoted(&it.display().to_string()));
    format!("{} -m pip install {}", words[0], words[1])
}

impl<Of: Lines> fmt::Display for Summary<Of> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.bytes.div_ceil(1_000_000);
        writeln!(f, "{}", self.path.display())?;
        let common = [
            ("size", format!("{megabytes} MB ({} bytes)", self.bytes)),
            ("SHA-256", self.sha256.clone()),
            ("version", self.version.clone()),
        ];
        for (label, value) in common.into_iter().chain(self.of.lines()) {
            writeln!(f, "  {label:<9}{value}")?;
        }
        let mut total = 0.0;
        for StepTime { step, seconds } in &self.steps {
            writeln!(f, "  {seconds:>7.1} s  {step}")?;
            total += seconds;
        }
        writeln!(f, "  {total:>7.1} s  in all")?;
        writeln!(f, "To install it: {}", self.install)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json() {
        let steps = [("verify", 4.2), ("compile", 31.0)].map(|(step, seconds)| StepTime { step: step.into(), seconds });
        let summary = Summary {
            path: "dist/torch-2.15.0+cu132.pinbuddy.0.1.0-cp311-cp311-manylinux_2_28_x86_64.whl".into(),
            bytes: 539_000_001,
            sha256: "ab".repeat(32),
            version: "2.15.0+cu132.pinbuddy.0.1.0".into(),
            of: Fork {
                series: "2.15.0".into(),
                floors: Floors::default(),
                tag: "manylinux_2_28_x86_64".into(),
                library_bytes: 700_000,
            },
            commit: None,
            steps: steps.into(),
            install: install(Path::new("python3.11"), Path::new("my dist/torch.whl")),
        };
        insta::assert_snapshot!("summary_text", summary.to_string());
        insta::assert_snapshot!("summary_json", serde_json::to_string_pretty(&summary).unwrap());
    }
}
