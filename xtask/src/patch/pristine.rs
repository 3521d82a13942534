//! The header of a release as the official wheel ships it: from the cache, or from the wheel itself.
//!
//! A wheel that is fetched only for its header is removed afterwards, and the header is kept: the wheel has hundreds of
//! megabytes. Invariant: the header has the hash of versions.toml.

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
use xtask_patchkit::release::{Release, Versions};

/// The header. If a wheel has to be fetched, it is `python`'s.
pub fn header(versions: &Versions, release: &Release, python: &Path) -> Result<Vec<u8>> {
    let inside = in_wheel(&versions.header);
    let inside = inside.with_context(|| format!("{} is in no wheel", versions.header))?;
    let cache = paths::cache();
    let place = header::place(&cache, &inside, &release.header_sha256);
    let kept = fs::read(&place).ok();
    if let Some(bytes) = kept.filter(|it| Digest::of(it).hex() == release.header_sha256) {
        return Ok(bytes);
    }
    let python = Python::probe(python)?;
    let read = |path: &Path, name: &WheelName| {
        let expected = Expected {
            name,
            release: &release.version,
            header: &inside,
            header_sha256: &release.header_sha256,
            cache: &cache,
        };
        verify::identify(path, &expected)?;
        fs::read(&place).with_context(|| format!("reading {}", place.display()))
    };
    if let Some((path, name)) = fetch::cached(&cache, release, &python) {
        return read(&path, &name);
    }
    let _lock = lock::take("build")?;
    let progress = Progress::new(3);
    let tools = progress.step("check the tools", |_| tools::ensure(&python))?;
    let what = format!("fetch the official wheel of torch {}", release.version);
    let (path, name, _scratch) = progress.step(&what, |step| fetch::fetch(&cache, release, &python, &tools, step))?;
    progress.step("keep its header", |_| read(&path, &name))
}
