//! Applies a series to copies of a wheel's headers, for `build-wheel`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::git::{self, Direction};
use super::series::Patch;
use xtask_support::hash::Digest;
use xtask_support::refusal::refuse;
use xtask_wheel::header::in_wheel;

/// Headers by their path in the wheel.
pub type Headers = BTreeMap<String, Vec<u8>>;

/// Applies `series` to the headers below `tree`, and returns what it changed and added.
pub fn apply(series: &[Patch], tree: &Path) -> Result<Headers> {
    let work = tempfile::tempdir().context("making a folder to patch in")?;
    let files = copy_in(series, tree, work.path())?;
    for patch in series {
        apply_one(patch, work.path())?;
    }
    let mut headers = Headers::new();
    for (upstream, inside) in files {
        let path = work.path().join(&upstream);
        headers.insert(
            inside,
            fs::read(&path).with_context(|| format!("reading the patched {upstream}"))?,
        );
    }
    Ok(headers)
}

/// Copies every file that the series starts from, and returns all that it touches.
fn copy_in(series: &[Patch], tree: &Path, work: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for patch in series {
        for (upstream, &added) in &patch.files {
            let Some(inside) = in_wheel(upstream) else {
                return Err(refuse(format!(
                    "{} changes a file that a wheel has no header for",
                    patch.name
                ))
                .found(upstream)
                .expected("a header below aten/src, c10 or torch/csrc")
                .into());
            };
            if files.insert(upstream.clone(), inside.clone()).is_some() || added {
                continue;
            }
            let (from, to) = (tree.join(&inside), work.join(upstream));
            fs::create_dir_all(to.parent().unwrap_or(work))?;
            fs::copy(&from, &to)
                .with_context(|| format!("{} changes {inside}, copying it", patch.name))?;
        }
    }
    Ok(files)
}

fn apply_one(patch: &Patch, work: &Path) -> Result<()> {
    let Err(said) = git::apply(&patch.path, work, Direction::Forward)? else {
        return Ok(());
    };
    Err(refuse(format!("{} does not apply", patch.name))
        .found(said)
        .expected("every hunk's context as the patch has it: no fuzz, no three-way merge")
        .remedy("compare the patch with the wheel's header; both are named above and in patches/versions.toml")
        .into())
}

/// Refuses a result that is not the pinned one.
pub fn check_result(headers: &Headers, header: &str, pinned: &str, version: &str) -> Result<()> {
    let found = headers
        .get(header)
        .map(|bytes| Digest::of(bytes).hex())
        .unwrap_or_default();
    if found == pinned {
        return Ok(());
    }
    Err(refuse(format!("after the series for {version}, {header} is not what patches/versions.toml pins"))
        .found(format!("SHA-256 {found}"))
        .expected(if pinned.is_empty() { "a patched_sha256; none is pinned".into() } else { format!("SHA-256 {pinned}") })
        .remedy("if the series was changed on purpose, set patched_sha256 to what was found; otherwise restore the series")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series;

    const HEADER: &str = "torch/include/ATen/core/A.h";
    const PATCH: &str = "From 0 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] Open\n\nWhy.\n---\n\
        diff --git a/aten/src/ATen/core/A.h b/aten/src/ATen/core/A.h\n\
        --- a/aten/src/ATen/core/A.h\n+++ b/aten/src/ATen/core/A.h\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n\
        diff --git a/aten/src/ATen/core/B.h b/aten/src/ATen/core/B.h\nnew file mode 100644\n\
        --- /dev/null\n+++ b/aten/src/ATen/core/B.h\n@@ -0,0 +1 @@\n+new\n-- \n2.40.0\n";

    fn run(header: &str) -> Result<Headers> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("series"), "open.patch\n")?;
        fs::write(folder.path().join("open.patch"), PATCH)?;
        let file = folder.path().join("tree").join(HEADER);
        fs::create_dir_all(file.parent().unwrap())?;
        fs::write(&file, header)?;
        apply(&series::read(folder.path())?, &folder.path().join("tree"))
    }

    #[test]
    fn changes_and_adds() {
        let headers = run("one\ntwo\nthree\n").unwrap();
        assert_eq!(headers[HEADER], b"one\nTWO\nthree\n");
        assert_eq!(headers["torch/include/ATen/core/B.h"], b"new\n");
    }

    #[test]
    fn no_fuzz() {
        insta::assert_snapshot!(run("one\ntwo\nTHREE\n").unwrap_err());
        assert!(run("one\nTWO\nthree\n").is_err(), "applied already");
    }

    #[test]
    fn the_result_is_pinned() {
        let headers = Headers::from([(HEADER.to_owned(), b"x".to_vec())]);
        let found = Digest::of(b"x").hex();
        check_result(&headers, HEADER, &found, "2.15.0").unwrap();
        insta::assert_snapshot!(check_result(&headers, HEADER, "", "2.15.0").unwrap_err());
    }
}
