//! A series applied: to a wheel's headers for `build-wheel`, and to a source tree for `cargo xtask patch apply`.
//!
//! Invariant: a series that does not fit exactly changes nothing.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use super::fit::{self, Files, Reader};
use super::release::Release;
use super::series::Patch;
use super::tree::Tree;
use xtask_support::hash::Digest;
use xtask_support::refusal::refuse;
use xtask_wheel::header::in_wheel;

/// Headers by their path in the wheel.
pub type Headers = BTreeMap<String, Vec<u8>>;

/// Applies `series` to the headers of a wheel below `tree`, and returns what it changed and added. Refuses a result that
/// is not the release's pinned one; `header` is the pinned header's path in the wheel.
pub fn to_headers(series: &[Patch], tree: &Path, header: &str, release: &Release) -> Result<Headers> {
    let read = |upstream: &str| {
        let Some(inside) = in_wheel(upstream) else {
            return Err(refuse(format!(
                "the series for {} changes a file that a wheel has no header for",
                release.version
            ))
            .found(upstream)
            .expected("a header below aten/src, c10 or torch/csrc")
            .into());
        };
        fit::read_below(tree, &inside)
    };
    let after = fit::apply(series, &fit::read_all(series, &read)?)?.into_iter();
    let headers: Headers = after.filter_map(|(path, bytes)| Some((in_wheel(&path)?, bytes?))).collect();
    let found = headers.get(header).map(|bytes| Digest::of(bytes).hex());
    fit::check_pinned(&found.unwrap_or_default(), release, header)?;
    Ok(headers)
}

/// The files that `read` returns, after a release's series; none where they have it already. `shown` names them in messages.
pub fn after(
    shown: &str,
    header: &str,
    release: &Release,
    series: &[Patch],
    read: &Reader<'_>,
) -> Result<Option<Files>> {
    let before = fit::read_all(series, read)?;
    let hash = |files: &Files| {
        let bytes = files.get(header).and_then(Option::as_deref);
        Digest::of(bytes.unwrap_or_default()).hex()
    };
    let (found, version) = (hash(&before), &release.version);
    if found == release.patched_sha256 {
        return Ok(None);
    }
    let after = fit::apply(series, &before)?;
    if found == release.header_sha256 {
        fit::check_pinned(&hash(&after), release, header)?;
        return Ok(Some(after));
    }
    Err(refuse(format!("the series for torch {version} was not applied to {shown}"))
        .found(format!("{header} with SHA-256 {found}"))
        .expected(format!("SHA-256 {}, as the release ships it; nothing was changed", release.header_sha256))
        .remedy(format!(
            "git -C {shown} checkout v{version} -- {header}\n\
             or, if its changes are to stay: git -C {shown} apply FILE, with each patch of patches/{}",
            release.series
        ))
        .into())
}

/// Puts a release's series into a source tree. Returns a description for people.
pub fn to_tree(tree: &Tree, header: &str, release: &Release, series: &[Patch]) -> Result<String> {
    let (root, version) = (tree.root.display().to_string(), &release.version);
    let read = |path: &str| fit::read_below(&tree.root, path);
    let Some(after) = after(&root, header, release, series, &read)? else {
        return Ok(format!("{root} has the series for torch {version} already; nothing was changed\n"));
    };
    fit::replace(&after, &tree.root)?;
    Ok(format!(
        "applied the series for torch {version} to {root}; {header} has SHA-256 {}, as pinned\n",
        release.patched_sha256
    ))
}
