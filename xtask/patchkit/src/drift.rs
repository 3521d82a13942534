//! `cargo xtask patch drift`: which hunks of a series still have their lines in another tree, in git's own words.
//!
//! Reports only: a hunk that moved or is gone is no error.

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
    /// What the tree's header is.
    header: &'static str,
    patches: Vec<Tried>,
}

/// One patch: whether it applies, and git's words, for each hunk that moved or whose lines are gone.
#[derive(Debug, Serialize)]
struct Tried {
    patch: String,
    applies: bool,
    git: String,
}

/// Tries the patches one after the other; of one that does not apply, the hunks that do are put in for the next.
pub fn look(tree: Tree, release: &Release, series: &[Patch]) -> Result<Drift> {
    let work = tempfile::tempdir().context("making a folder to patch in")?;
    fit::write(
        &fit::read_all(series, &|path| tree.read(path))?,
        work.path(),
    )?;
    let tried = series.iter().map(|Patch { name, path, .. }| {
        let tried = git::apply_partly(path, work.path())?;
        let (applies, git) = (tried.is_ok(), tried.unwrap_or_else(|told| told));
        Ok(Tried {
            patch: name.clone(),
            applies,
            git,
        })
    });
    Ok(Drift {
        on: tree.root.display().to_string(),
        release: release.version.clone(),
        header: match tree.header {
            None => "not there",
            Some(it) if it == release.header_sha256 => "the one that the release ships",
            Some(it) if it == release.patched_sha256 => "the one with the series in it",
            Some(_) => "not the one that the release ships",
        },
        patches: tried.collect::<Result<_>>()?,
        version: tree.version,
    })
}

/// The report for people.
pub fn describe(drift: &Drift) -> String {
    let Drift {
        on,
        version,
        release,
        header,
        patches,
    } = drift;
    let version = version.as_deref().unwrap_or("not there");
    let mut text = format!(
        "{on} (version.txt: {version}), against the series for torch {release}\nthe header is {header}\n"
    );
    for Tried {
        patch,
        applies,
        git,
    } in patches
    {
        let word = if *applies {
            "applies"
        } else {
            "does not apply"
        };
        text += &format!("{patch}: {word}\n");
        text.extend(git.lines().map(|line| format!("  {line}\n")));
    }
    let fitting = patches.iter().filter(|it| it.applies).count();
    text + &format!("{fitting} of {} patches apply\n", patches.len())
}
