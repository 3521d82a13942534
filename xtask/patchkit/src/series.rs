//! A series: the patches of a release in order, and what git says of them.
//!
//! Invariant: patches that [`read`] returns are files in the series' folder and no links, each is named once, has each path once, and
//! only changes or adds ordinary files.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::git;
use xtask_support::hash::Digest;

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
    let list = folder.join("series");
    let text = fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
    let lines = text.lines().map(str::trim);
    let names = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut seen = HashSet::new();
    let patches = names.map(|name| {
        ensure!(
            !name.contains('/') && seen.insert(name),
            "{}: a name of a file beside it, once, and not {name:?}",
            list.display()
        );
        let path = folder.join(name);
        ensure!(!path.is_symlink(), "{}: expected a patch, found a link", path.display());
        Ok(Patch {
            name: name.to_owned(),
            sha256: Digest::of_file(&path)?.hex(),
            files: files(&path).with_context(|| format!("in {}", path.display()))?,
            path,
        })
    });
    patches.collect()
}

/// The upstream paths that a patch touches; true for a file that it adds. Refuses one that does anything else.
fn files(patch: &Path) -> Result<BTreeMap<String, bool>> {
    let mut files = BTreeMap::new();
    for line in git::describe(patch)?.lines() {
        let created = line.strip_prefix(" create ");
        if let Some(path) = created.map(|it| it.trim_start_matches("mode 100644 ")) {
            ensure!(
                files.insert(path.to_owned(), true) == Some(false),
                "it makes something else than a file: {line:?}"
            );
        } else if let [_, "-", path] = line.split('\t').collect::<Vec<_>>()[..] {
            bail!("it changes a binary file: {path}");
        } else if let [_, _, path] = line.split('\t').collect::<Vec<_>>()[..] {
            ensure!(
                !path.split('/').any(|it| matches!(it, "" | "." | "..")),
                "a path that leaves the tree or is not plain: {path:?}"
            );
            let first = files.insert(path.to_owned(), false).is_none();
            ensure!(first, "it changes a file twice: {path}");
        } else {
            bail!("it does more than to change files: {line:?}");
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDS: &str = "--- /dev/null\n+++ b/aten/x.h\n@@ -0,0 +1 @@\n+x\n";

    #[test]
    fn changed_and_added_files() {
        let folder = tempfile::tempdir().unwrap();
        let files = |text: &str| {
            fs::write(folder.path().join("a.patch"), text).unwrap();
            files(&folder.path().join("a.patch")).map_err(|it| it.to_string())
        };
        let patch = "Subject: x\n\n--- a/aten/src/A.h\n+++ b/aten/src/A.h\n@@ -1 +1 @@\n-a\n+b\n\
                     --- /dev/null\n+++ b/aten/src/B.h\n@@ -0,0 +1 @@\n+b\n-- \n2.40\n";
        let expected = [("aten/src/A.h", false), ("aten/src/B.h", true)];
        let expected = expected.map(|(path, added)| (path.to_owned(), added));
        assert_eq!(files(patch), Ok(BTreeMap::from(expected)));
        let git = "diff --git a/aten/x.h b/aten/x.h\n";
        let mode = |it: &str| format!("{git}new file mode {it}\n{ADDS}");
        assert!(files(&mode("100644")).is_ok());
        for bad in [
            "no diff\n",
            "--- a/x.h\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
            "--- a/x.h\n+++ b/x.h\n@@ -1,2 +1 @@\n-a\n",
            &[ADDS, ADDS].concat(),
            &mode("120000"),
            &format!("{git}old mode 100644\nnew mode 100755\n"),
            "diff --git a/x.h b/y.h\nsimilarity index 100%\nrename from x.h\nrename to y.h\n",
            "diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n",
        ] {
            assert!(files(bad).is_err(), "{bad:?}");
        }
        for path in ["../x.h", "aten/../../x.h", "/etc/x", "aten/./x.h"] {
            assert!(files(&ADDS.replace("aten/x.h", path)).is_err(), "{path}");
        }
    }

    #[test]
    fn a_list_names_patches_in_their_order_and_all_of_them_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let read = |list: &str| {
            fs::write(folder.path().join("series"), list).unwrap();
            let patches = read(folder.path()).map_err(|error| format!("{error:#}"))?;
            Ok::<Vec<_>, String>(patches.into_iter().map(|it| it.name).collect())
        };
        fs::write(folder.path().join("b.patch"), ADDS).unwrap();
        fs::write(folder.path().join("a.patch"), ADDS).unwrap();
        std::os::unix::fs::symlink("a.patch", folder.path().join("link.patch")).unwrap();
        let names = read("# order matters\n\n b.patch \na.patch\n");
        assert_eq!(names.unwrap(), ["b.patch", "a.patch"]);
        for bad in ["b.patch\nc.patch\n", "c.patch\nc.patch\n", "../c.patch\n"] {
            assert!(read(bad).unwrap_err().contains("c.patch"), "{bad:?}");
        }
        let said = read("link.patch\n").unwrap_err();
        assert!(said.contains("link.patch: expected a patch"), "{said}");
    }
}
