//! `cargo xtask patch apply` and `unapply`: a series put into a source tree, and taken out again.
//!
//! Invariants: all files change or none; a header that is not pinned, before or after, needs `--force`; a series that does
//! not apply exactly changes nothing.

use std::path::Path;

use anyhow::Result;

use super::git::Direction;
use super::judge::Trial;
use super::outcome::Outcome;
use super::tree::Tree;
use super::{replace, series, unsaved};
use crate::release::Versions;
use xtask_support::refusal::refuse;

/// The task.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The tree: a checkout, or an unpacked source archive.
    pub source: &'a Path,
    /// The release whose series is applied, instead of the tree's own.
    pub torch: Option<&'a str>,
    /// Also where the files have other changes, if the series fits exactly all the same.
    pub force: bool,
}

/// Does it, and returns a description for people.
pub fn change(
    root: &Path,
    versions: &Versions,
    wanted: Wanted<'_>,
    direction: Direction,
) -> Result<String> {
    let tree = Tree::open(wanted.source, versions)?;
    let release = match wanted.torch {
        Some(version) => versions.find(Some(version))?,
        None => tree.release(versions)?,
    };
    let series = series::read(&root.join("patches").join(&release.series))?;
    let trial = Trial {
        header: &versions.header,
        release,
        series: &series,
    };
    let read = |path: &str| tree.read(path);
    let judged = match direction {
        Direction::Forward => trial.forward(&read)?,
        Direction::Reverse => trial.reverse(&read)?,
    };
    let shown = tree.root.display().to_string();
    let what = format!("the series for torch {}", release.version);
    let forced = match judged.outcome {
        Outcome::AlreadyApplied if direction == Direction::Forward => {
            return Ok(format!("{shown} has {what} already; nothing was changed\n"));
        }
        Outcome::AlreadyApplied => {
            return Ok(format!(
                "{shown} does not have {what}; nothing was changed\n"
            ));
        }
        Outcome::Clean => false,
        Outcome::Drifted { .. } if wanted.force => true,
        outcome => return Err(refused(&shown, direction, &outcome).into()),
    };
    // Only forward: the pinned result itself is a change that git calls not committed.
    if direction == Direction::Forward && !wanted.force {
        let touched: Vec<&str> = judged.before.keys().map(String::as_str).collect();
        unsaved::refuse_changes(
            &tree.root,
            &touched,
            "git commit or git stash them, or go on with --force",
        )?;
    }
    let changed = replace::replace(&tree.root, &judged.before, &judged.after)?;
    let (verb, preposition, hash) = match direction {
        Direction::Forward => ("applied", "to", &release.patched_sha256),
        Direction::Reverse => ("took", "out of", &release.header_sha256),
    };
    let mut said = format!("{verb} {what} {preposition} {shown}:\n");
    for patch in &series {
        said += &format!("  {}\n", patch.name);
    }
    said += &format!("changed: {}\n", changed.join(", "));
    said += &if forced {
        "the header was not the one expected, and is not a pinned one now (--force)\n".to_owned()
    } else {
        format!("{} has SHA-256 {hash}, as pinned\n", versions.header)
    };
    Ok(said)
}

/// Why the tree was not changed, and what to do.
pub fn refused(
    shown: &str,
    direction: Direction,
    outcome: &Outcome,
) -> xtask_support::refusal::Refusal {
    let verb = match direction {
        Direction::Forward => "applied to",
        Direction::Reverse => "taken out of",
    };
    let remedy = match (outcome, direction) {
        (Outcome::Drifted { .. }, Direction::Forward) => {
            format!("{}\nor go on with --force", outcome.remedy()).replace("DIR", shown)
        }
        (Outcome::Drifted { .. }, Direction::Reverse) => {
            "restore the header as the series left it, or go on with --force".to_owned()
        }
        _ => outcome.remedy().to_owned(),
    };
    let said = match (outcome, direction) {
        (Outcome::Drifted { file, found, .. }, Direction::Reverse) => {
            format!("{file} was changed since the series was applied: SHA-256 {found}")
        }
        _ => outcome.to_string(),
    };
    refuse(format!("the series was not {verb} {shown}"))
        .found(said)
        .expected("files that the series fits exactly; nothing was changed")
        .remedy(remedy)
}
