//! How a series fits the files of a tree or of a wheel: tried by git on copies in a temporary folder.
//!
//! Invariants: nothing else is changed; a series that git does not apply exactly is a refusal, which names the patch,
//! the hunk, and the lines that are in its place.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::git;
use super::release::Release;
use super::series::Patch;
use xtask_support::refusal::{Refusal, refuse};
use xtask_support::scratch;

/// How many lines a refusal shows of a file that a patch does not fit.
const SHOWN: usize = 6;

/// Contents by upstream path; none where there is no such file.
pub type Files = BTreeMap<String, Option<Vec<u8>>>;
/// Reads a file by its upstream path.
pub type Reader<'a> = dyn Fn(&str) -> Result<Option<Vec<u8>>> + 'a;

/// The files that the patches touch.
pub fn read_all(series: &[Patch], read: &Reader<'_>) -> Result<Files> {
    let paths = series.iter().flat_map(|patch| patch.files.keys());
    paths.map(|path| Ok((path.clone(), read(path)?))).collect()
}

/// The files after the patches.
pub fn apply(series: &[Patch], before: &Files) -> Result<Files> {
    let work = tempfile::tempdir().context("making a folder to patch in")?;
    replace(before, work.path())?;
    for patch in series {
        if let Err(told) = git::apply(&patch.path, work.path())? {
            return Err(does_not_apply(patch, work.path(), &told)?.into());
        }
    }
    let paths = before.keys();
    paths.map(|path| Ok((path.clone(), read_below(work.path(), path)?))).collect()
}

/// Refuses a result that is not the pinned one.
pub fn check_pinned(found: &str, release: &Release, header: &str) -> Result<()> {
    let pinned = &release.patched_sha256;
    if found == pinned {
        return Ok(());
    }
    let version = &release.version;
    Err(refuse(format!("after the series for {version}, {header} is not what patches/versions.toml pins"))
        .found(format!("SHA-256 {found}"))
        .expected(if pinned.is_empty() {
            "a patched_sha256; none is pinned".into()
        } else {
            format!("SHA-256 {pinned}")
        })
        .remedy(
            "if the series was changed on purpose, set patched_sha256 to what was found; otherwise restore the series",
        )
        .into())
}

/// git's words, and the lines that are where the hunk belongs.
fn does_not_apply(patch: &Patch, work: &Path, told: &str) -> Result<Refusal> {
    let mut found = told.to_owned();
    let failed = told.lines().find_map(|line| line.strip_prefix("error: patch failed: "));
    if let Some((path, line)) = failed.and_then(|it| it.rsplit_once(':')) {
        let bytes = read_below(work, path)?.unwrap_or_default();
        let there = String::from_utf8_lossy(&bytes);
        if there.contains("\r\n") {
            found += &format!("\n{path} has CR LF at the ends of lines, and the patch LF");
        }
        let above = line.parse::<usize>()?.saturating_sub(1);
        let there = there.lines().skip(above).take(SHOWN);
        let there = there.map(|it| format!("\n{it}")).collect::<String>();
        found += &format!("\nin line {line} of {path} there is:{there}");
    }
    Ok(refuse(format!("{} does not apply", patch.name))
        .found(found)
        .expected("every hunk's lines as the patch has them, in LF: no fuzz, no three-way merge; nothing was changed")
        .remedy("restore the release's own files (patches/versions.toml has the header's SHA-256), or carry the series over: cargo xtask patch rebase --from VERSION --source DIR"))
}

/// A file below a folder, where there is one.
pub fn read_below(folder: &Path, path: &str) -> Result<Option<Vec<u8>>> {
    let path = folder.join(path);
    match fs::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

/// Replaces files of a tree, each in one step; those that are new come first, since the others may need them.
pub fn replace(files: &Files, root: &Path) -> Result<()> {
    let mut all: Vec<_> = files.iter().map(|(path, bytes)| (root.join(path), bytes)).collect();
    all.sort_by_key(|(path, _)| path.exists());
    for (path, bytes) in all {
        if let Some(bytes) = bytes {
            scratch::replace(&path, bytes)?;
        }
    }
    Ok(())
}
