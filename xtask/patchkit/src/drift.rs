//! `cargo xtask patch drift`: which hunks of a series still have their lines in another tree, in git's own words.
//!
//! Reports only: a hunk that moved or is gone is no error.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde::Serialize;

use super::fit;
use super::git;
use super::release::Release;
use super::series::Patch;
use super::tree::Tree;

/// The report.
#[derive(Debug, Serialize)]
pub struct Drift {
    /// The tree.
    on: String,
    /// The version in version.txt.
    version: Option<String>,
    /// The release whose series it is.
    release: String,
    /// `shipped`, `patched`, `other` or `missing`.
    header: &'static str,
    patches: Vec<Tried>,
}

/// One patch.
#[derive(Debug, Serialize)]
struct Tried {
    patch: String,
    applies: bool,
    /// git's words: a line for each hunk that moved, and the lines of those that are gone.
    git: String,
}

/// Tries the patches one after the other; of one that does not apply, the hunks that do are put in for the next.
pub fn look(tree: Tree, release: &Release, series: &[Patch]) -> Result<Drift> {
    let work = tempfile::tempdir().context("making a folder to patch in")?;
    fit::write(
        &fit::read_all(series, &|path| tree.read(path))?,
        work.path(),
    )?;
    let mut patches = Vec::new();
    for patch in series {
        let tried = git::apply_partly(&patch.path, work.path())?;
        patches.push(Tried {
            patch: patch.name.clone(),
            applies: tried.is_ok(),
            git: tried.unwrap_or_else(|told| told),
        });
    }
    let header = match &tree.header {
        None => "missing",
        Some(it) if *it == release.header_sha256 => "shipped",
        Some(it) if *it == release.patched_sha256 => "patched",
        Some(_) => "other",
    };
    Ok(Drift {
        on: tree.root.display().to_string(),
        version: tree.version,
        release: release.version.clone(),
        header,
        patches,
    })
}

/// The report for people.
pub fn describe(drift: &Drift) -> String {
    let version = drift.version.as_deref().unwrap_or("not there");
    let mut text = format!(
        "{} (version.txt: {version}), against the series for torch {}\n",
        drift.on, drift.release
    );
    text += match drift.header {
        "shipped" => "the header is the one that the release ships\n",
        "patched" => "the header has the series in it already\n",
        "missing" => "the header is not there\n",
        _ => "the header is not the one that the release ships\n",
    };
    for Tried {
        patch,
        applies,
        git,
    } in &drift.patches
    {
        let word = if *applies {
            "applies"
        } else {
            "does not apply"
        };
        let _ = writeln!(text, "{patch}: {word}");
        for line in git.lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    let fitting = drift.patches.iter().filter(|it| it.applies).count();
    let _ = writeln!(text, "{fitting} of {} patches apply", drift.patches.len());
    text
}
