//! Applies a series to copies of a wheel's headers, for `build-wheel`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::files::{self, Files};
use super::git::Direction;
use super::series::Patch;
use xtask_support::hash::Digest;
use xtask_support::refusal::refuse;
use xtask_wheel::header::in_wheel;

/// Headers by their path in the wheel.
pub type Headers = BTreeMap<String, Vec<u8>>;

/// Applies `series` to the headers below `tree`, and returns what it changed and added.
pub fn apply(series: &[Patch], tree: &Path) -> Result<Headers> {
    let mut before = Files::new();
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
            if !before.contains_key(upstream) {
                let shipped = (!added).then(|| fs::read(tree.join(&inside))).transpose();
                let shipped = shipped
                    .with_context(|| format!("{} changes {inside}, reading it", patch.name))?;
                before.insert(upstream.clone(), shipped);
            }
        }
    }
    let order: Vec<&Patch> = series.iter().collect();
    let after = files::apply(&order, &before, Direction::Forward)?.map_err(|stuck| {
        refuse(format!("{} does not apply", stuck.patch))
            .found(stuck.git)
            .expected("every hunk's context as the patch has it: no fuzz, no three-way merge")
            .remedy("compare the patch with the wheel's header; both are named above and in patches/versions.toml")
    })?;
    let headers = after.into_iter();
    Ok(headers
        .filter_map(|(path, bytes)| Some((in_wheel(&path)?, bytes?)))
        .collect())
}

/// Refuses a header that is not the pinned result.
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
