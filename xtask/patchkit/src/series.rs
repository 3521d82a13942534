//! A series: the patches of a release in order, and the files that they touch. Knows nothing of git.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use xtask_support::hash::Digest;
use xtask_support::refusal::refuse;

/// One patch of a series.
#[derive(Clone, Debug)]
pub struct Patch {
    /// Its file name.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// Of the file.
    pub sha256: String,
    /// The upstream paths that it touches; true for a file that it adds.
    pub files: BTreeMap<String, bool>,
}

/// Reads `patches/RELEASE/series` and the patches that it names.
pub fn read(folder: &Path) -> Result<Vec<Patch>> {
    let list = folder.join("series");
    let text = fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
    let names = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    names.map(|name| read_patch(folder, name)).collect()
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
    let files = touched(&text).with_context(|| format!("in {}", path.display()))?;
    Ok(Patch {
        name: name.to_owned(),
        sha256: Digest::of(text.as_bytes()).hex(),
        path,
        files,
    })
}

/// The files between `---` and `+++` lines, by their upstream paths.
fn touched(patch: &str) -> Result<BTreeMap<String, bool>> {
    let mut files = BTreeMap::new();
    let mut lines = patch.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(old) = line.strip_prefix("--- ") else {
            continue;
        };
        let Some(new) = lines.peek().and_then(|next| next.strip_prefix("+++ ")) else {
            continue;
        };
        let Some(new) = new.strip_prefix("b/") else {
            bail!("it deletes or renames a file: {old}")
        };
        if old != "/dev/null" && old.strip_prefix("a/") != Some(new) {
            bail!("it renames {old} to {new}");
        }
        files.insert(new.to_owned(), old == "/dev/null");
    }
    if files.is_empty() {
        bail!("it changes no file");
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_and_added_files() {
        let patch = "Subject: x\n\n--- a/aten/src/A.h\n+++ b/aten/src/A.h\n@@ -1 +1 @@\n-a\n+b\n\
                     --- /dev/null\n+++ b/aten/src/B.h\n@@ -0,0 +1 @@\n+b\n";
        let files = touched(patch).unwrap();
        assert_eq!(
            files.into_iter().collect::<Vec<_>>(),
            [
                ("aten/src/A.h".to_owned(), false),
                ("aten/src/B.h".to_owned(), true)
            ]
        );
        assert!(touched("--- a/x.h\n+++ /dev/null\n").is_err());
        assert!(touched("no diff").is_err());
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
