//! A series: the patches of a release in order, and what is in them. Knows nothing of git.
//!
//! Invariant: of what [`read`] returns, every name is once in the list, every path once in its patch, and nothing is a link.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use diffy::patch_set::{FileOperation, ParseOptions, PatchKind, PatchSet};

use xtask_support::hash::Digest;
use xtask_support::refusal::refuse;

/// The most bytes of a list and of a patch, and the most patches of a list: a hundred times what ours have.
const LARGEST_LIST: u64 = 64 << 10;
const LARGEST_PATCH: u64 = 1 << 20;
const MOST_PATCHES: usize = 256;

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
    for (number, name) in names.iter().enumerate() {
        if names[..number].contains(name) {
            let list = folder.join("series");
            return Err(refuse(format!("{} names a patch twice", list.display()))
                .found(name)
                .expected("each patch once")
                .remedy("remove one of the two lines")
                .into());
        }
    }
    names.iter().map(|name| read_patch(folder, name)).collect()
}

/// The names in `patches/RELEASE/series`, as they stand there.
pub(crate) fn listed(folder: &Path) -> Result<Vec<String>> {
    let list = folder.join("series");
    let text = read_text(&list, LARGEST_LIST)?;
    let lines = text.lines().map(str::trim);
    let names = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let names: Vec<String> = names.map(str::to_owned).collect();
    if names.len() > MOST_PATCHES {
        return Err(refuse(format!("{} names too many patches", list.display()))
            .found(names.len().to_string())
            .expected(format!("{MOST_PATCHES} at most"))
            .remedy("restore it, for example with `git checkout -- patches`")
            .into());
    }
    Ok(names)
}

fn read_patch(folder: &Path, name: &str) -> Result<Patch> {
    let path = folder.join(name);
    if name.contains('/') || fs::symlink_metadata(&path).is_err() {
        return Err(refuse(format!(
            "{} names a patch that is not there",
            folder.join("series").display()
        ))
        .found(name)
        .expected(format!("a file in {}", folder.display()))
        .remedy("restore it, for example with `git checkout -- patches`")
        .into());
    }
    let text = text(&path)?;
    let diffs = diffs(&text).with_context(|| format!("in {}", path.display()))?;
    Ok(Patch {
        name: name.to_owned(),
        sha256: Digest::of(text.as_bytes()).hex(),
        path,
        files: diffs.into_iter().map(|it| (it.path, it.added)).collect(),
    })
}

/// The text of a patch.
pub(crate) fn text(path: &Path) -> Result<String> {
    read_text(path, LARGEST_PATCH)
}

/// The text of a plain file with so many bytes at most.
fn read_text(path: &Path, largest: u64) -> Result<String> {
    let shown = path.display();
    let kind = fs::symlink_metadata(path)
        .with_context(|| format!("reading {shown}"))?
        .file_type();
    let found = if kind.is_symlink() {
        Some("a link")
    } else if kind.is_file() {
        None
    } else {
        Some("a folder or a device")
    };
    if let Some(found) = found {
        return Err(refuse(format!("{shown} is no plain file"))
            .found(found)
            .expected("a text file")
            .remedy("restore it, for example with `git checkout -- patches`")
            .into());
    }
    let file = File::open(path).with_context(|| format!("reading {shown}"))?;
    let mut text = String::new();
    file.take(largest + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("reading {shown}"))?;
    if text.len() as u64 > largest {
        return Err(refuse(format!("{shown} is too large"))
            .found(format!("more than {largest} bytes"))
            .expected(format!("{largest} bytes at most"))
            .remedy("restore it, for example with `git checkout -- patches`")
            .into());
    }
    Ok(text)
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
    // git makes links and submodules of files with such modes. Lines of hunks begin otherwise.
    for line in patch.lines() {
        let mode = ["new file mode ", "new mode "].map(|it| line.strip_prefix(it));
        if let Some(mode) = mode.into_iter().flatten().next()
            && !matches!(mode.trim(), "100644" | "100755")
        {
            bail!("it makes something else than a file: {line:?}");
        }
    }
    let mut seen = BTreeSet::new();
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
        if !seen.insert(path.clone()) {
            bail!("it changes a file twice: {path}");
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

    const ADDS: &str = "--- /dev/null\n+++ b/aten/x.h\n@@ -0,0 +1 @@\n+x\n";

    /// What is said of this list, with a patch `one.patch` of this text beside it.
    fn refusal(list: &str, patch: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("series"), list).unwrap();
        fs::write(folder.path().join("one.patch"), patch).unwrap();
        format!("{:#}", read(folder.path()).unwrap_err())
    }

    #[test]
    fn a_name_or_a_file_twice() {
        let said = refusal("one.patch\n# again\n one.patch \n", ADDS);
        assert!(said.contains("names a patch twice"), "{said}");
        let said = refusal("one.patch\n", &[ADDS, ADDS].concat());
        assert!(said.contains("it changes a file twice: aten/x.h"), "{said}");
    }

    #[test]
    fn links_on_disk_and_in_a_patch() {
        for mode in ["new file mode 120000", "new mode 160000"] {
            let patch = format!("diff --git a/aten/x.h b/aten/x.h\n{mode}\n{ADDS}");
            let said = refusal("one.patch\n", &patch);
            assert!(said.contains("something else than a file"), "{said}");
            assert!(
                diffs(
                    &patch
                        .replace("120000", "100755")
                        .replace("160000", "100644")
                )
                .is_ok()
            );
        }
        let folder = tempfile::tempdir().unwrap();
        let (real, list) = (folder.path().join("real"), folder.path().join("series"));
        let link = folder.path().join("one.patch");
        fs::write(&real, ADDS).unwrap();
        fs::write(&list, "one.patch\n").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let said = format!("{:#}", read(folder.path()).unwrap_err());
        assert!(said.contains("one.patch is no plain file"), "{said}");
        fs::remove_file(&link).unwrap();
        fs::rename(&real, &link).unwrap();
        assert_eq!(read(folder.path()).unwrap().len(), 1);
        fs::rename(&list, &real).unwrap();
        std::os::unix::fs::symlink(&real, &list).unwrap();
        let said = format!("{:#}", read(folder.path()).unwrap_err());
        assert!(said.contains("series is no plain file"), "{said}");
    }

    #[test]
    fn more_than_any_series_has() {
        let long = "#".repeat(LARGEST_LIST as usize);
        let said = refusal(&format!("{long}\n"), ADDS);
        assert!(said.contains("series is too large"), "{said}");
        let long = "x".repeat(LARGEST_PATCH as usize);
        let said = refusal("one.patch\n", &format!("{long}\n{ADDS}"));
        assert!(said.contains("one.patch is too large"), "{said}");
        let many: String = (0..=MOST_PATCHES).map(|n| format!("{n}.patch\n")).collect();
        let said = refusal(&many, ADDS);
        assert!(said.contains("names too many patches"), "{said}");
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
