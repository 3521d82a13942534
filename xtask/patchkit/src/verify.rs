//! `cargo xtask patch verify`: whether a series applies exactly, with the pinned result.
//!
//! Invariant: every result is a named [`Outcome`]; only files that cannot be read are an error.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::files::Reader;
use super::judge::Trial;
use super::outcome::Outcome;
use super::series;
use super::tree::Tree;
use crate::release::{Release, Versions};
use xtask_support::refusal::refuse;

/// One release, and the outcome of its series.
#[derive(Debug, Serialize)]
pub struct Verified {
    release: String,
    /// The files that it was tried on.
    on: String,
    patches: usize,
    #[serde(flatten)]
    outcome: Outcome,
}

/// Refuses outcomes that are not as pinned; the remedy is the first one's.
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

/// Tries the series of a tree's own release on that tree.
pub fn on_tree(root: &Path, versions: &Versions, folder: &Path) -> Result<Verified> {
    let tree = Tree::open(folder, versions)?;
    let release = tree.release(versions)?;
    let on = tree.root.display().to_string();
    try_on(root, versions, release, &on, &|path| tree.read(path))
}

/// Tries the series of a release on the files that `read` returns; `on` names them.
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

/// A line for each release, with details below the ones that are not clean.
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
