//! `cargo xtask patch drift`: which hunks of a series still have their lines in another tree, in git's own words.
//!
//! Reports only: a hunk that moved or is gone is no error.

use std::fmt::Write as _;

use anyhow::{Context, Result};

use super::fit;
use super::git;
use super::release::Release;
use super::series::Patch;
use super::tree::Tree;

/// Tries the patches one after the other; of one that does not apply, the hunks that do are put in for the next. Returns
/// whether each applies, and git's words for each hunk that moved or whose lines are gone.
pub fn look(tree: &Tree, release: &Release, series: &[Patch]) -> Result<String> {
    let work = tempfile::tempdir().context("making a folder to patch in")?;
    let files = fit::read_all(series, &|path| tree.read(path))?;
    fit::write(&files, work.path())?;
    let header = match &tree.header {
        None => "not there",
        Some(it) if *it == release.header_sha256 => "the one that the release ships",
        Some(it) if *it == release.patched_sha256 => "the one with the series in it",
        Some(_) => "not the one that the release ships",
    };
    let mut text = format!(
        "{} (version.txt: {}), against the series for torch {}\nthe header is {header}\n",
        tree.root.display(),
        tree.version.as_deref().unwrap_or("not there"),
        release.version
    );
    let mut fitting = 0;
    for Patch { name, path, .. } in series {
        let tried = git::apply_partly(path, work.path())?;
        let (word, told) = match &tried {
            Ok(told) => ("applies", told),
            Err(told) => ("does not apply", told),
        };
        fitting += usize::from(tried.is_ok());
        writeln!(text, "{name}: {word}")?;
        text.extend(told.lines().map(|line| format!("  {line}\n")));
    }
    Ok(text + &format!("{fitting} of {} patches apply\n", series.len()))
}
