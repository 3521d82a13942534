//! Does a series apply as it is, and give what is pinned?
//!
//! Invariant: every end of it is an [`Outcome`] with a name; only what cannot be looked at is an error.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::judge::{Reader, Trial};
use super::outcome::Outcome;
use super::series;
use super::tree::Tree;
use crate::release::{Release, Versions};
use xtask_support::refusal::refuse;

/// One release, and what came of its series.
#[derive(Debug, Serialize)]
pub struct Verified {
    release: String,
    /// What it was tried on.
    on: String,
    patches: usize,
    #[serde(flatten)]
    outcome: Outcome,
}

/// Refuses outcomes that are not as pinned, by the first of them.
pub fn require(all: &[Verified]) -> Result<()> {
    let bad: Vec<_> = all.iter().filter(|it| !it.outcome.is_good()).collect();
    let Some(first) = bad.first() else {
        return Ok(());
    };
    let releases: Vec<_> = bad.iter().map(|it| it.release.as_str()).collect();
    Err(
        refuse(format!("not as pinned: torch {}", releases.join(", ")))
            .remedy(first.outcome.remedy())
            .into(),
    )
}

/// The series of the release that a tree is, on that tree.
pub fn on_tree(root: &Path, versions: &Versions, folder: &Path) -> Result<Verified> {
    let tree = Tree::open(folder, versions)?;
    let release = tree.release(versions)?;
    let on = tree.root.display().to_string();
    try_on(root, versions, release, &on, &|path| tree.read(path))
}

/// The series of a release, on files that `read` gives; `on` names them.
pub fn try_on(
    root: &Path,
    versions: &Versions,
    release: &Release,
    on: &str,
    read: &Reader<'_>,
) -> Result<Verified> {
    let series = series::read(&root.join("patches").join(&release.series))?;
    let trial = Trial {
        header: &versions.header,
        release,
        series: &series,
    };
    Ok(Verified {
        release: release.version.clone(),
        on: on.to_owned(),
        patches: series.len(),
        outcome: trial.forward(read)?.outcome,
    })
}

/// A line for each, with details below those that are not clean.
pub fn describe(all: &[Verified]) -> String {
    let mut text = String::new();
    for it in all {
        let _ = writeln!(
            text,
            "torch {}: {} patches on {}: {}",
            it.release, it.patches, it.on, it.outcome
        );
    }
    text
}
