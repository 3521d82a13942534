//! Several files replaced together: all of them, or none.
//!
//! What is new is written beside the old first, so that a disk that is full or a folder that is not ours
//! shows before anything has changed. Then each gets its name by one rename; where one cannot, those
//! before it are put back.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::judge::Files;
use crate::report::refusal::refuse;
use crate::support::scratch::Scratch;

/// A file to change.
struct Change {
    path: PathBuf,
    /// What is there; none where there is nothing.
    old: Option<Vec<u8>>,
    /// The new contents beside it; none where it goes.
    new: Option<Scratch>,
}

/// Makes the files below `root` from what they are in `before` into what they are in `after`. Returns
/// those that changed.
pub fn replace(root: &Path, before: &Files, after: &Files) -> Result<Vec<String>> {
    let changed: Vec<&String> = after
        .keys()
        .filter(|path| before.get(*path) != after.get(*path))
        .collect();
    for path in &changed {
        check_writable(root, &root.join(path))?;
    }
    let folders = Folders::make(root, &changed)?;
    let mut changes = Vec::new();
    for path in &changed {
        let (old, new) = (before[*path].clone(), after[*path].as_deref());
        changes.push(stage(root.join(path), old, new).map_err(|error| not_written(root, error))?);
    }
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
    folders.keep();
    Ok(changed.into_iter().cloned().collect())
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

fn read_only(root: &Path, found: &str) -> crate::report::refusal::Refusal {
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
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn files(list: &[(&str, Option<&str>)]) -> Files {
        let one = |(path, text): &(&str, Option<&str>)| {
            ((*path).to_owned(), text.map(|it| it.as_bytes().to_vec()))
        };
        list.iter().map(one).collect()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|it| it.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn changed_added_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let before = files(&[
            ("a", Some("1")),
            ("b", Some("1")),
            ("c/d", None),
            ("e", Some("1")),
        ]);
        let after = files(&[
            ("a", Some("2")),
            ("b", None),
            ("c/d", Some("2")),
            ("e", Some("1")),
        ]);
        for name in ["a", "b", "e"] {
            fs::write(root.join(name), "1").unwrap();
        }
        fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o751)).unwrap();
        assert_eq!(replace(root, &before, &after).unwrap(), ["a", "b", "c/d"]);
        assert_eq!(names(root), ["a", "c", "e"]);
        assert_eq!(fs::read_to_string(root.join("c/d")).unwrap(), "2");
        let mode = fs::metadata(root.join("a")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o751);
    }

    #[test]
    fn a_failure_half_way_leaves_all_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        // The last cannot be removed, since it is not there, whatever `before` says.
        let before = files(&[("a", Some("1")), ("b/c", None), ("z", Some("1"))]);
        let after = files(&[("a", Some("2")), ("b/c", Some("2")), ("z", None)]);
        fs::write(root.join("a"), "1").unwrap();
        replace(root, &before, &after).unwrap_err();
        assert_eq!(names(root), ["a"]);
        assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "1");
    }

    #[test]
    fn what_nobody_may_write_is_left() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let (before, after) = (files(&[("a", Some("1"))]), files(&[("a", Some("2"))]));
        fs::write(root.join("a"), "1").unwrap();
        fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o444)).unwrap();
        let said = replace(root, &before, &after).unwrap_err().to_string();
        insta::assert_snapshot!(said.replace(&root.display().to_string(), "/tree"));
        fs::remove_file(root.join("a")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", root.join("a")).unwrap();
        assert!(
            replace(root, &before, &after)
                .unwrap_err()
                .to_string()
                .contains("plain file")
        );
        // What the system says, where the modes did not.
        let error = std::io::Error::from(std::io::ErrorKind::ReadOnlyFilesystem);
        let said = not_written(
            Path::new("/tree"),
            anyhow::Error::new(error).context("writing /tree/a"),
        );
        assert!(
            said.to_string().starts_with("/tree cannot be written to"),
            "{said}"
        );
    }
}
