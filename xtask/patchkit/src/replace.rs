//! Several files replaced together: all of them, or none.
//!
//! What is new is written beside the old first, so that a disk that is full or a folder that is not ours
//! shows before anything has changed. Then each gets its name by one rename; where one cannot, those
//! before it are put back. Who presses Ctrl-C waits for that moment. A process that is killed in it leaves
//! added files without the changed one that needs them, or with it, and never the other way round: added
//! files come first, and removed ones last.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::judge::Files;
use xtask_support::refusal::refuse;
use xtask_support::scratch::{self, Scratch};

/// A file to change.
struct Change {
    path: PathBuf,
    /// What is there; none where there is nothing.
    old: Option<Vec<u8>>,
    /// The new contents beside it; none where it goes.
    new: Option<Scratch>,
}

/// Makes the files below `root` from what they are in `before` into what they are in `after`; one that
/// `before` does not name is not there. Returns those that changed.
pub fn replace(root: &Path, before: &Files, after: &Files) -> Result<Vec<String>> {
    let changed: Vec<&String> = after
        .keys()
        .filter(|path| contents(before, path) != contents(after, path))
        .collect();
    for path in &changed {
        check_writable(root, &root.join(path))?;
    }
    let folders = Folders::make(root, &changed)?;
    let mut changes = Vec::new();
    for path in &changed {
        let (old, new) = (contents(before, path), contents(after, path));
        changes.push(
            stage(root.join(path), old.cloned(), new.map(Vec::as_slice))
                .map_err(|error| not_written(root, error))?,
        );
    }
    changes.sort_by_key(|change| (change.old.is_some(), change.new.is_none()));
    scratch::undisturbed(|| publish_all(&mut changes, root))?;
    folders.keep();
    Ok(changed.into_iter().cloned().collect())
}

fn publish_all(changes: &mut [Change], root: &Path) -> Result<()> {
    for count in 0..changes.len() {
        if let Err(error) = publish(&mut changes[count]) {
            for done in changes[..count].iter().rev() {
                put_back(done).with_context(|| {
                    format!("putting {} back after: {error:#}", done.path.display())
                })?;
            }
            return Err(not_written(root, error));
        }
    }
    Ok(())
}

fn contents<'a>(files: &'a Files, path: &str) -> Option<&'a Vec<u8>> {
    files.get(path)?.as_ref()
}

fn stage(path: PathBuf, old: Option<Vec<u8>>, new: Option<&[u8]>) -> Result<Change> {
    let Some(bytes) = new else {
        let new = None;
        return Ok(Change { path, old, new });
    };
    let scratch = write_beside(&path, bytes)?;
    if old.is_some() {
        let mode = fs::metadata(&path)?.permissions();
        fs::set_permissions(scratch.path(), mode)?;
    }
    let new = Some(scratch);
    Ok(Change { path, old, new })
}

fn write_beside(path: &Path, bytes: &[u8]) -> Result<Scratch> {
    let scratch = Scratch::file(path)?;
    let shown = scratch.path().display();
    fs::write(scratch.path(), bytes).with_context(|| format!("writing {shown}"))?;
    Ok(scratch)
}

fn publish(change: &mut Change) -> Result<()> {
    let shown = change.path.display();
    match change.new.take() {
        Some(scratch) => scratch.publish(&change.path),
        None => fs::remove_file(&change.path).with_context(|| format!("removing {shown}")),
    }
}

fn put_back(change: &Change) -> Result<()> {
    match &change.old {
        None => Ok(fs::remove_file(&change.path)?),
        Some(bytes) => {
            let scratch = write_beside(&change.path, bytes)?;
            if let Ok(data) = fs::metadata(&change.path) {
                fs::set_permissions(scratch.path(), data.permissions())?;
            }
            scratch.publish(&change.path)
        }
    }
}

/// A rename replaces a file that nobody may write, and a link by a file; neither is wanted.
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

/// Says so where it is the tree that does not let us.
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

/// Folders that were made for added files, removed again unless they are kept.
struct Folders(Vec<PathBuf>);

impl Folders {
    fn make(root: &Path, files: &[&String]) -> Result<Self> {
        let mut made = Self(Vec::new());
        for file in files {
            let path = root.join(file);
            let missing: Vec<_> = path
                .ancestors()
                .skip(1)
                .take_while(|it| !it.exists())
                .map(Path::to_path_buf)
                .collect();
            for folder in missing.into_iter().rev() {
                fs::create_dir(&folder)
                    .with_context(|| format!("creating {}", folder.display()))
                    .map_err(|error| not_written(root, error))?;
                made.0.push(folder);
            }
        }
        Ok(made)
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests;
