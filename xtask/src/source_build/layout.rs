//! A patched copy of a source tree to build in, updated by every run.
//!
//! A copy, because PyTorch's build writes into its tree, and the user's tree must stay unchanged even if this
//! program is killed. Invariants: the tree is only read; an unchanged file keeps its time, so that an interrupted
//! build resumes.

use std::collections::BTreeSet;
use std::fs::{self, File, FileTimes, Metadata};
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::support::progress::Step;
use xtask_patchkit::git;
use xtask_patchkit::judge::Files;

/// Build results at the root of a tree, and git's own folder.
const LEFT_BEHIND: [&str; 3] = [".git", "build", "dist"];

/// The files of a tree: in a checkout the tracked files, submodules included, and new files that are not ignored;
/// otherwise all but build results.
pub fn files(root: &Path) -> Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    if root.join(".git").exists() {
        for arguments in [
            &["--cached", "--recurse-submodules"][..],
            &["--others", "--exclude-standard"],
        ] {
            files.extend(listed(root, arguments)?);
        }
    } else {
        walk(root, "", &mut files)?;
    }
    Ok(files)
}

fn listed(root: &Path, arguments: &[&str]) -> Result<Vec<String>> {
    let shell = Shell::new()?;
    let command = cmd!(shell, "git -C {root} ls-files -z {arguments...}");
    let text = git::unbound(command)
        .quiet()
        .read()
        .with_context(|| format!("listing the files of {}", root.display()))?;
    let names = text.split('\0').filter(|it| !it.is_empty());
    Ok(names.map(str::to_owned).collect())
}

fn walk(root: &Path, below: &str, files: &mut BTreeSet<String>) -> Result<()> {
    let folder = root.join(below);
    for entry in fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "__pycache__" || (below.is_empty() && LEFT_BEHIND.contains(&name.as_str())) {
            continue;
        }
        let path = if below.is_empty() {
            name
        } else {
            format!("{below}/{name}")
        };
        if entry.file_type()?.is_dir() {
            walk(root, &path, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}

/// Updates `copy` to the tree's files, with `patched` replacing some, and removes files of the last run (`known`)
/// that the tree no longer has. Returns how many files changed.
pub fn bring_up_to_date(
    root: &Path,
    copy: &Path,
    patched: &Files,
    known: &BTreeSet<String>,
    step: &Step,
) -> Result<(BTreeSet<String>, usize)> {
    let mut files = files(root)?;
    files.extend(patched.keys().cloned());
    let mut changed = 0;
    for gone in known.difference(&files) {
        if fs::remove_file(copy.join(gone)).is_ok() {
            changed += 1;
        }
    }
    for (number, path) in files.iter().enumerate() {
        if number % 500 == 0 {
            step.say(format!("{number} of {} files", files.len()));
        }
        let to = copy.join(path);
        let moved = match patched.get(path) {
            Some(bytes) => write(&to, bytes.as_deref().unwrap_or_default()),
            None => copy_one(&root.join(path), &to),
        };
        changed += usize::from(moved.with_context(|| format!("copying {path}"))?);
    }
    Ok((files, changed))
}

/// Writes the file if it differs; returns whether it did.
fn write(to: &Path, bytes: &[u8]) -> Result<bool> {
    if fs::read(to).is_ok_and(|present| present == bytes) {
        return Ok(false);
    }
    make_parent(to)?;
    fs::write(to, bytes)?;
    Ok(true)
}

fn copy_one(from: &Path, to: &Path) -> Result<bool> {
    let Ok(data) = fs::symlink_metadata(from) else {
        // Deleted in the checkout, but not in git.
        return Ok(false);
    };
    if data.is_dir() {
        // A missing submodule.
        return Ok(false);
    }
    if data.is_symlink() {
        let target = fs::read_link(from)?;
        if fs::read_link(to).is_ok_and(|present| present == target) {
            return Ok(false);
        }
        make_parent(to)?;
        let _ = fs::remove_file(to);
        symlink(target, to)?;
        return Ok(true);
    }
    if fs::symlink_metadata(to).is_ok_and(|present| same(&present, &data)) {
        return Ok(false);
    }
    make_parent(to)?;
    let _ = fs::remove_file(to);
    fs::copy(from, to)?;
    let file = File::options().read(true).open(to)?;
    file.set_times(FileTimes::new().set_modified(data.modified()?))?;
    Ok(true)
}

fn same(one: &Metadata, other: &Metadata) -> bool {
    one.is_file() && one.len() == other.len() && one.modified().ok() == other.modified().ok()
}

fn make_parent(path: &Path) -> Result<()> {
    Ok(fs::create_dir_all(path.parent().unwrap_or(path))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_keeps_its_time_and_the_tree_is_only_read() {
        let folder = tempfile::tempdir().unwrap();
        let (root, copy) = (folder.path().join("tree"), folder.path().join("copy"));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir_all(root.join("build")).unwrap();
        for (name, text) in [
            ("a/b/one.h", "one"),
            ("two.cpp", "two"),
            ("build/x.o", "object"),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        symlink("two.cpp", root.join("link")).unwrap();
        let patched = Files::from([
            ("two.cpp".to_owned(), Some(b"patched".to_vec())),
            ("cmake/New.cmake".to_owned(), Some(b"new".to_vec())),
        ]);
        let update = |known: &BTreeSet<String>| {
            bring_up_to_date(&root, &copy, &patched, known, &Step::silent()).unwrap()
        };
        let (files, changed) = update(&BTreeSet::new());
        assert_eq!(changed, 4);
        assert!(!copy.join("build").exists());
        assert_eq!(fs::read_to_string(copy.join("two.cpp")).unwrap(), "patched");
        assert_eq!(fs::read_to_string(root.join("two.cpp")).unwrap(), "two");
        let time = |path: &str| fs::metadata(copy.join(path)).unwrap().modified().unwrap();
        let times = ["a/b/one.h", "two.cpp"].map(time);
        // As a build would.
        fs::create_dir(copy.join("build")).unwrap();
        assert_eq!(update(&files).1, 0);
        assert_eq!(["a/b/one.h", "two.cpp"].map(time), times);
        assert!(copy.join("build").exists(), "the build's own stays");
        fs::remove_file(root.join("a/b/one.h")).unwrap();
        fs::write(root.join("three"), "3").unwrap();
        assert_eq!(update(&files).1, 2);
        assert!(!copy.join("a/b/one.h").exists());
    }
}
