//! The files of a release as the official wheel ships them: from the cache, or from the wheel itself.
//!
//! A wheel that is fetched only for its header is removed afterwards, and the header is kept: the wheel has hundreds of
//! megabytes. Invariant: the files have the hashes of versions.toml and of the wheel's RECORD.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::build_wheel::fetch;
use crate::python::{Python, tools};
use crate::support::hash::Digest;
use crate::support::progress::Progress;
use crate::support::{lock, paths};
use crate::wheel::header::{self, in_wheel};
use crate::wheel::name::WheelName;
use crate::wheel::verify::{self, Expected};
use xtask_patchkit::files::Files;
use xtask_patchkit::release::{Release, Versions};
use xtask_patchkit::series::Patch;

/// The files that `series` changes, as `release` ships them. If a wheel has to be fetched, it is `python`'s.
pub fn get(
    versions: &Versions,
    release: &Release,
    series: &[Patch],
    python: &Path,
) -> Result<Files> {
    let mut changed: Vec<&String> = Vec::new();
    for (path, &added) in series.iter().flat_map(|patch| &patch.files) {
        if !added && !changed.contains(&path) {
            changed.push(path);
        }
    }
    let inside = in_wheel(&versions.header);
    let inside = inside.with_context(|| format!("{} is in no wheel", versions.header))?;
    let cache = paths::cache();
    let kept = fs::read(header::place(&cache, &inside, &release.header_sha256)).ok();
    let kept = kept.filter(|bytes| Digest::of(bytes).hex() == release.header_sha256);
    if let (Some(bytes), true) = (kept, changed.iter().all(|it| **it == versions.header)) {
        return Ok(Files::from([(versions.header.clone(), Some(bytes))]));
    }
    let names = changed.iter().map(|path| {
        in_wheel(path).with_context(|| format!("{path} is no header that a wheel has"))
    });
    let names = names.collect::<Result<Vec<_>>>()?;
    let texts = from_wheel(&cache, release, &inside, &names, python)?;
    let files = changed.into_iter().cloned().zip(texts);
    Ok(files
        .map(|(path, text)| (path, text.map(String::into_bytes)))
        .collect())
}

/// Reads files of the wheel that `build-wheel` keeps, or else of one that is fetched for them.
fn from_wheel(
    cache: &Path,
    release: &Release,
    header: &str,
    names: &[String],
    python: &Path,
) -> Result<Vec<Option<String>>> {
    let python = Python::probe(python)?;
    let read = |path: &Path, name: &WheelName| {
        let expected = Expected {
            name,
            release: &release.version,
            header,
            header_sha256: &release.header_sha256,
            cache,
        };
        verify::texts(path, &expected, names)
    };
    if let Some((path, name)) = fetch::cached(cache, release, &python) {
        return read(&path, &name);
    }
    let _lock = lock::take("build")?;
    let progress = Progress::new(3);
    let tools = progress.step("check the tools", |_| tools::ensure(&python))?;
    let what = format!("fetch the official wheel of torch {}", release.version);
    let wheel = progress.step(&what, |step| {
        fetch::temporary(cache, release, &python, &tools, step)
    })?;
    progress.step("keep its header", |_| read(&wheel.path, &wheel.name))
}
