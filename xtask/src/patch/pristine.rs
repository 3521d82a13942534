//! The files of a release as the official wheel ships them: from the cache, or fetched as `build-wheel`
//! does.
//!
//! Invariant: what is read has the hashes that versions.toml and the wheel's RECORD give.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::judge;
use crate::build_wheel::plan::Plan;
use crate::build_wheel::{fetch, tree};
use crate::cli::BuildWheel;
use crate::python::tools;
use crate::report::progress::Progress;
use crate::support::hash::Digest;
use crate::support::lock;
use crate::wheel::header::{self, in_wheel};
use crate::wheel::verify::Expected;

/// Where they are.
#[derive(Debug)]
pub enum Pristine {
    /// The one file that the series changes, kept by an earlier run.
    Header(String, Vec<u8>),
    /// What was extracted from the wheel.
    Tree(PathBuf),
}

impl Pristine {
    /// Of one release.
    pub fn get(version: &str) -> Result<Self> {
        let plan = Plan::make(&BuildWheel {
            torch: Some(version.to_owned()),
            wheel: None,
            python: "python3".into(),
            out: "dist".into(),
            dry_run: false,
            json: false,
        })?;
        match kept(&plan) {
            Some(header) => Ok(Self::Header(plan.versions.header, header)),
            None => Ok(Self::Tree(fetched(&plan)?)),
        }
    }

    /// A file by its upstream path.
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>> {
        match self {
            Self::Header(name, bytes) => Ok((path == name).then(|| bytes.clone())),
            Self::Tree(folder) => {
                let inside = in_wheel(path)
                    .with_context(|| format!("{path} is no header that a wheel has"))?;
                judge::read(folder, &inside)
            }
        }
    }
}

/// The header in the cache, where the series changes no other file.
fn kept(plan: &Plan) -> Option<Vec<u8>> {
    let mut changed = plan.series.iter().flat_map(|patch| &patch.files);
    let alone = changed.all(|(path, &added)| added || *path == plan.versions.header);
    let pinned = &plan.release.header_sha256;
    let bytes = fs::read(header::place(&plan.cache, &plan.header, pinned)).ok()?;
    (alone && Digest::of(&bytes).hex() == *pinned).then_some(bytes)
}

fn fetched(plan: &Plan) -> Result<PathBuf> {
    let _lock = lock::take("build")?;
    let progress = Progress::new(3);
    let tools = progress.step("check the tools", |_| tools::ensure(&plan.python))?;
    let base = progress.step("get the official wheel", |step| {
        fetch::official(&plan.cache, &plan.release, &plan.python, &tools, step)
    })?;
    let expected = Expected {
        name: &base.name,
        release: &plan.release,
        header: &plan.header,
        cache: &plan.cache,
    };
    let cache: &Path = &plan.cache;
    let (folder, _) = progress.step("verify it", |step| {
        tree::ensure(cache, &base, &expected, step)
    })?;
    Ok(folder)
}
