//! A series: the patches of a release in order, and what is in them. Knows nothing of git.
//!
//! Invariant: of what [`read`] returns, every name is once in the list, every path once in its patch, and nothing is a link.

use std::collections::{BTreeMap, BTreeSet};
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
fn listed(folder: &Path) -> Result<Vec<String>> {
    let text = text(&folder.join("series"))?;
    let lines = text.lines().map(str::trim);
    let names = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(names.map(str::to_owned).collect())
}

fn read_patch(folder: &Path, name: &str) -> Result<Patch> {
    let path = folder.join(name);
    let is_file = fs::symlink_metadata(&path).is_ok_and(|it| it.is_file());
    if name.contains('/') || !is_file {
        let list = folder.join("series");
        return Err(refuse(format!(
            "{} names a patch that is not there",
            list.display()
        ))
        .found(name)
        .expected(format!("a file in {}, and no link", folder.display()))
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

/// The text of a patch or a list.
pub fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
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

    const ADDS: &str = "--- /dev/null\n+++ b/aten/x.h\n@@ -0,0 +1 @@\n+x\n";

    #[test]
    fn changed_and_added_files() {
        let patch = "Subject: x\n\n--- a/aten/src/A.h\n+++ b/aten/src/A.h\n@@ -1 +1 @@\n-a\n+b\n\
                     --- /dev/null\n+++ b/aten/src/B.h\n@@ -0,0 +1 @@\n+b\n-- \n2.40\n";
        let found = diffs(patch).unwrap();
        let files = found.iter().map(|it| (it.path.as_str(), it.added));
        let expected = [("aten/src/A.h", false), ("aten/src/B.h", true)];
        assert_eq!(files.collect::<Vec<_>>(), expected);
        let lines = found[1].patch.hunks()[0].lines().len();
        assert_eq!(lines, 1, "without the signature");
        for bad in [
            "no diff\n",
            "--- a/x.h\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
            "--- a/x.h\n+++ b/y.h\n@@ -1 +1 @@\n-a\n+b\n",
            "--- a/x.h\n+++ b/x.h\n@@ -1,2 +1 @@\n-a\n",
            &[ADDS, ADDS].concat(),
            &format!("diff --git a/aten/x.h b/aten/x.h\nnew file mode 120000\n{ADDS}"),
        ] {
            assert!(diffs(bad).is_err(), "{bad:?}");
        }
        for path in ["../x.h", "aten/../../x.h", "/etc/x", "aten//x.h", "aten/"] {
            let error = diffs(&ADDS.replace("aten/x.h", path))
                .unwrap_err()
                .to_string();
            assert!(error.contains("leaves the tree"), "{path}: {error}");
        }
    }

    #[test]
    fn lists_that_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |list: &str| {
            fs::write(folder.path().join("series"), list).unwrap();
            let said = format!("{:#}", read(folder.path()).unwrap_err());
            said.replace(&folder.path().display().to_string(), "patches/2.15.0")
        };
        insta::assert_snapshot!(refusal("# order matters\n\nopen.patch\n"), @r"
        patches/2.15.0/series names a patch that is not there
          found     open.patch
          expected  a file in patches/2.15.0, and no link
          to do     restore it, for example with `git checkout -- patches`
        ");
        fs::write(folder.path().join("open.patch"), ADDS).unwrap();
        let said = refusal("open.patch\n# again\n open.patch \n");
        assert!(said.contains("names a patch twice"), "{said}");
        std::os::unix::fs::symlink("open.patch", folder.path().join("link.patch")).unwrap();
        let said = refusal("link.patch\n");
        assert!(said.contains("and no link"), "{said}");
    }
}
