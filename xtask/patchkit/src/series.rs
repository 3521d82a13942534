//! A series: the patches of a release in order, and what is in them. Knows nothing of git.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use diffy::patch_set::{FileOperation, ParseOptions, PatchKind, PatchSet};

use xtask_support::hash::Digest;
use xtask_support::refusal::refuse;

/// One patch of a series.
#[derive(Clone, Debug)]
pub struct Patch {
    /// Its file name.
    pub name: String,
    /// The patch file.
    pub path: PathBuf,
    /// SHA-256 of the patch file.
    pub sha256: String,
    /// The upstream paths that it touches; true for a file that it adds.
    pub files: BTreeMap<String, bool>,
}

/// Reads `patches/RELEASE/series` and the patches that it names.
pub fn read(folder: &Path) -> Result<Vec<Patch>> {
    let names = listed(folder)?;
    names.iter().map(|name| read_patch(folder, name)).collect()
}

/// The names in `patches/RELEASE/series`.
pub(crate) fn listed(folder: &Path) -> Result<Vec<String>> {
    let list = folder.join("series");
    let text = fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
    let lines = text.lines().map(str::trim);
    let names = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(names.map(str::to_owned).collect())
}

fn read_patch(folder: &Path, name: &str) -> Result<Patch> {
    let path = folder.join(name);
    if name.contains('/') || !path.is_file() {
        return Err(refuse(format!(
            "{} names a patch that is not there",
            folder.join("series").display()
        ))
        .found(name)
        .expected(format!("a file in {}", folder.display()))
        .remedy("restore it, for example with `git checkout -- patches`")
        .into());
    }
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let diffs = diffs(&text).with_context(|| format!("in {}", path.display()))?;
    Ok(Patch {
        name: name.to_owned(),
        sha256: Digest::of(text.as_bytes()).hex(),
        path,
        files: diffs.into_iter().map(|it| (it.path, it.added)).collect(),
    })
}

/// The changes of a patch to one file.
#[derive(Debug)]
pub struct Diff<'a> {
    /// The upstream path.
    pub path: String,
    /// Whether the patch adds the file.
    pub added: bool,
    /// Its hunks.
    pub patch: diffy::Patch<'a, str>,
}

/// Splits a patch by files.
pub fn diffs(patch: &str) -> Result<Vec<Diff<'_>>> {
    let each = PatchSet::parse(patch, ParseOptions::unidiff()).map(|file| {
        let file = file?;
        let (path, added) = match file.operation().strip_prefix(1) {
            FileOperation::Create(path) => (path.into_owned(), true),
            FileOperation::Modify { original, modified } if original == modified => {
                (modified.into_owned(), false)
            }
            other => bail!("it deletes or renames a file: {other:?}"),
        };
        if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            bail!("a path that leaves the tree or is not plain: {path:?}");
        }
        let PatchKind::Text(patch) = file.into_patch() else {
            bail!("it changes a binary file: {path}");
        };
        Ok(Diff { path, added, patch })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_and_added_files() {
        let patch = "Subject: x\n\n--- a/aten/src/A.h\n+++ b/aten/src/A.h\n@@ -1 +1 @@\n-a\n+b\n\
                     --- /dev/null\n+++ b/aten/src/B.h\n@@ -0,0 +1 @@\n+b\n-- \n2.40\n";
        let found = diffs(patch).unwrap();
        let files = found.iter().map(|it| (it.path.as_str(), it.added));
        let expected = [("aten/src/A.h", false), ("aten/src/B.h", true)];
        assert_eq!(files.collect::<Vec<_>>(), expected);
        assert_eq!(
            found[1].patch.hunks()[0].lines().len(),
            1,
            "without the signature"
        );
        for bad in [
            "no diff\n",
            "--- a/x.h\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
            "--- a/x.h\n+++ b/y.h\n@@ -1 +1 @@\n-a\n+b\n",
            "--- a/x.h\n+++ b/x.h\n@@ -1,2 +1 @@\n-a\n",
            "--- a/x.h\n+++ b/x.h\n@@ -18446744073709551615 +1 @@\n-a\n+b\n@@ -1 +1 @@\n-a\n+b\n",
        ] {
            assert!(diffs(bad).is_err(), "{bad:?}");
        }
        for path in ["../x.h", "aten/../../x.h", "/etc/x", "aten//x.h", "aten/"] {
            let patch = format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n");
            let error = diffs(&patch).unwrap_err().to_string();
            assert!(error.contains("leaves the tree"), "{path}: {error}");
        }
    }

    #[test]
    fn a_missing_patch() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("series"),
            "# order matters\n\nopen_the_seam.patch\n",
        )
        .unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        let error = error.replace(&folder.path().display().to_string(), "patches/2.15.0");
        insta::assert_snapshot!(error);
    }
}
