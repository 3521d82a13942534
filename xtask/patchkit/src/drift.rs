//! `cargo xtask patch drift`: where the lines that a series relies on are in another tree's header.
//!
//! Reports only: a hunk that moved or is gone is no error.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::files::Files;
use super::git::Direction;
use super::place::{Place, Spot};
use super::series::{self, Patch};
use super::survey::survey;
use super::tree::Tree;
use crate::release::Versions;

/// The report.
#[derive(Debug, Serialize)]
pub struct Drift {
    /// The tree.
    on: String,
    /// The version in version.txt.
    version: Option<String>,
    /// The release whose series it is.
    release: String,
    /// SHA-256 of the tree's header, if there is one, and of the release's.
    found: Option<String>,
    expected: String,
    /// The same after the series.
    patched: String,
    /// Files that the tree does not have.
    missing: Vec<String>,
    hunks: Vec<Spot>,
}

/// Looks for the hunks of a series: of the release asked for, of the tree's own, or of the newest one.
pub fn look(root: &Path, versions: &Versions, folder: &Path, asked: Option<&str>) -> Result<Drift> {
    let tree = Tree::open(folder, versions)?;
    let release = match asked {
        Some(_) => versions.find(asked)?,
        None => tree.release(versions).or_else(|_| versions.find(None))?,
    };
    let series = series::read(&root.join("patches").join(&release.series))?;
    let mut missing = Vec::new();
    let mut files = Files::new();
    for (path, &added) in series.iter().flat_map(|patch| &patch.files) {
        let bytes = tree.read(path)?;
        if bytes.is_none() && !added && !missing.contains(path) {
            missing.push(path.clone());
        }
        files.insert(path.clone(), bytes);
    }
    let order: Vec<&Patch> = series.iter().collect();
    Ok(Drift {
        on: tree.root.display().to_string(),
        version: tree.version,
        release: release.version.clone(),
        found: tree.header,
        expected: release.header_sha256.clone(),
        patched: release.patched_sha256.clone(),
        missing,
        hunks: survey(&order, &files, Direction::Forward)?,
    })
}

/// A line for each hunk, and one for all of them.
pub fn describe(drift: &Drift) -> String {
    let mut text = format!(
        "{} (version.txt: {}), against the series for torch {}\n",
        drift.on,
        drift.version.as_deref().unwrap_or("not there"),
        drift.release
    );
    let is = |hash: &String| drift.found.as_ref() == Some(hash);
    text += if is(&drift.expected) {
        "the header is the one that the release ships\n"
    } else if is(&drift.patched) {
        "the header has the series in it already\n"
    } else {
        "the header is not the one that the release ships\n"
    };
    for file in &drift.missing {
        let _ = writeln!(text, "{file} is not there");
    }
    let mut patch = "";
    let mut counts = [0; 4];
    for spot in &drift.hunks {
        if patch != spot.patch {
            patch = &spot.patch;
            let _ = writeln!(text, "{patch}");
        }
        counts[match spot.place {
            Place::Unchanged { .. } => 0,
            Place::Moved { .. } => 1,
            Place::Changed { .. } => 2,
            Place::Gone => 3,
        }] += 1;
        let place = spot.place.to_string().replace('\n', "\n    ");
        let _ = writeln!(text, "  hunk {} of {}: {place}", spot.hunk, spot.file);
    }
    let [unchanged, moved, changed, gone] = counts;
    let _ = writeln!(
        text,
        "{unchanged} hunks unchanged, {moved} moved, {changed} changed, {gone} gone"
    );
    text
}
