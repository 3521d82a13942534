//! Several files replaced together: all of them, or none. `git apply` removes a file before it writes the new one, and
//! so cannot promise that.
//!
//! First, the new contents and a copy of the old ones are written beside each file. A full disk or a folder of somebody
//! else's shows then, before anything has changed. Then each file is renamed into place; if one cannot be, those before
//! it are put back. Ctrl-C waits for that moment. A process that is killed in it may leave added files without the
//! changed file that needs them, never the other way round: added files come first, and removed ones last.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::files::Files;
use xtask_support::refusal::refuse;
use xtask_support::scratch::{self, Scratch};

/// A file to change.
struct Change {
    path: PathBuf,
    /// A copy of what is there; none if nothing is.
    old: Option<Scratch>,
    /// The new contents; none if the file is removed.
    new: Option<Scratch>,
}

/// Replaces the files below `root`, which have the contents in `before`, by those in `after`. A file that `before` does
/// not name is not there. Returns the files that changed.
pub fn replace(root: &Path, before: &Files, after: &Files) -> Result<Vec<String>> {
    let contents = |files: &Files, path: &String| files.get(path).cloned().flatten();
    let differs = |path: &&String| contents(before, path) != contents(after, path);
    let changed: Vec<String> = after.keys().filter(differs).cloned().collect();
    for path in &changed {
        check_writable(root, &root.join(path))?;
    }
    let folders = Folders::missing(root, &changed);
    let stage = |path: &String| {
        let old = contents(before, path);
        let new = contents(after, path);
        let path = root.join(path);
        let beside = |bytes: Option<Vec<u8>>| bytes.map(|it| write_beside(&path, &it)).transpose();
        let (old, new) = (beside(old)?, beside(new)?);
        Ok(Change { path, old, new })
    };
    let staged: Result<Vec<Change>> = changed.iter().map(stage).collect();
    let mut changes = staged.map_err(|error| not_written(root, error))?;
    changes.sort_by_key(|change| (change.old.is_some(), change.new.is_none()));
    scratch::undisturbed(|| publish_all(root, changes))?;
    folders.keep();
    Ok(changed)
}

fn publish_all(root: &Path, changes: Vec<Change>) -> Result<()> {
    let mut done: Vec<(PathBuf, Option<Scratch>)> = Vec::new();
    for Change { path, old, new } in changes {
        if let Err(error) = put(&path, new) {
            for (path, old) in done.into_iter().rev() {
                put(&path, old)
                    .with_context(|| format!("putting {} back after: {error:#}", path.display()))?;
            }
            return Err(not_written(root, error));
        }
        done.push((path, old));
    }
    Ok(())
}

/// Gives a file these contents, or removes it.
fn put(path: &Path, contents: Option<Scratch>) -> Result<()> {
    match contents {
        Some(scratch) => scratch.publish(path),
        None => fs::remove_file(path).with_context(|| format!("removing {}", path.display())),
    }
}

/// Writes a file beside `path`, with the mode of the one that is there.
fn write_beside(path: &Path, bytes: &[u8]) -> Result<Scratch> {
    let scratch = Scratch::file(path)?;
    let shown = scratch.path().display();
    fs::write(scratch.path(), bytes).with_context(|| format!("writing {shown}"))?;
    if let Ok(data) = fs::metadata(path) {
        fs::set_permissions(scratch.path(), data.permissions())?;
    }
    Ok(scratch)
}

/// Refuses a read-only file and a link: a rename would replace both.
fn check_writable(root: &Path, path: &Path) -> Result<()> {
    let Ok(data) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !data.is_file() {
        return Err(refuse(format!("{} is not a plain file", path.display()))
            .found(if data.is_symlink() {
                "a link"
            } else {
                "a folder"
            })
            .expected("upstream's file, or nothing")
            .remedy("restore it, or pass another tree")
            .into());
    }
    let folder = path.parent().unwrap_or(root);
    let locked = [path, folder]
        .into_iter()
        .find(|it| fs::metadata(it).is_ok_and(|data| data.permissions().readonly()));
    match locked {
        None => Ok(()),
        Some(it) => Err(read_only(root, &format!("{} is read-only", it.display())).into()),
    }
}

fn read_only(root: &Path, found: &str) -> xtask_support::refusal::Refusal {
    refuse(format!("{} cannot be written to", root.display()))
        .found(found)
        .expected("a source tree of yours; nothing was changed")
        .remedy(format!(
            "chmod -R u+w {}, or pass a copy of it",
            root.display()
        ))
}

/// Names the tree if it cannot be written to.
fn not_written(root: &Path, error: anyhow::Error) -> anyhow::Error {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let mut kinds = error
        .chain()
        .filter_map(|it| it.downcast_ref::<std::io::Error>())
        .map(std::io::Error::kind);
    if kinds.any(|it| matches!(it, PermissionDenied | ReadOnlyFilesystem)) {
        return read_only(root, &format!("{error:#}")).into();
    }
    error.context("nothing was changed")
}

/// Folders that added files need and that are not there yet; removed again unless they are kept.
struct Folders(Vec<PathBuf>);

impl Folders {
    fn missing(root: &Path, files: &[String]) -> Self {
        let paths: Vec<PathBuf> = files.iter().map(|it| root.join(it)).collect();
        let above = paths.iter().flat_map(|it| it.ancestors().skip(1));
        let mut missing: Vec<_> = above.filter(|it| !it.exists()).map(PathBuf::from).collect();
        // The innermost first.
        missing.sort_by_key(|it| std::cmp::Reverse(it.components().count()));
        Self(missing)
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        for folder in &self.0 {
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests;
