//! The inputs of a fork wheel, so that a later run can tell whether the wheel is current.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::contents::EXAMPLE;
use crate::fetch::Base;
use crate::library;
use crate::plan::Plan;
use xtask_patchkit::release::Cuda;
use xtask_patchkit::series::Patch;
use xtask_python::tools::Tools;
use xtask_support::hash::Digest;
use xtask_support::paths;
use xtask_wheel::provenance::{Inputs, Named};

/// Our files besides crates that affect the wheel.
const FILES: [&str; 5] = ["Cargo.toml", "Cargo.lock", "LICENSE", "NOTICE", EXAMPLE.0];

/// Files that only tests and measurements use.
const TESTS: [&str; 3] = ["examples", "tests", "tests.rs"];

/// Gathers them.
pub fn gather(
    plan: &Plan,
    base: &Base,
    cuda: &Cuda,
    compilers: &BTreeMap<String, String>,
    tools: &Tools,
) -> Result<Inputs> {
    let mut versions = compilers.clone();
    versions.insert("patchelf".into(), tools.patchelf_version.clone());
    versions.insert("cuda".into(), cuda.packages.join(" "));
    let base_wheel = Named { name: base.name.to_string(), sha256: base.sha256.clone() };
    let patches = plan.series.iter();
    Ok(Inputs {
        defaults: plan.defaults.clone(),
        links: plan.links.clone(),
        build: plan.build,
        ..of(base_wheel, &plan.release.series, patches, versions)?
    })
}

/// The inputs of a wheel without defaults, links and number that is made of `base_wheel`, whatever that is.
pub fn of<'a>(
    base_wheel: Named,
    series: &str,
    patches: impl Iterator<Item = &'a Patch>,
    tools: BTreeMap<String, String>,
) -> Result<Inputs> {
    let named = patches.map(|it| Named { name: it.name.clone(), sha256: it.sha256.clone() });
    Ok(Inputs {
        base_wheel,
        series: series.to_owned(),
        patches: named.collect(),
        pinbuddy: env!("CARGO_PKG_VERSION").into(),
        source_sha256: sources(paths::root())?,
        tools,
        defaults: BTreeMap::new(),
        links: BTreeMap::new(),
        build: None,
    })
}

/// The digest of all of them.
pub fn sources(root: &Path) -> Result<String> {
    let mut files = BTreeMap::new();
    let roots = [library::WHEEL, &[env!("CARGO_PKG_NAME")]].concat();
    let crates = library::folders(root, &roots)?;
    for source in &crates {
        collect(root, source, &mut files)?;
    }
    files.retain(|path, _| !path.split('/').any(|part| TESTS.contains(&part)));
    for file in FILES {
        collect(root, file, &mut files)?;
    }
    // Pages that `pinbuddy explain` has in it.
    let mut docs = BTreeMap::new();
    collect(root, "docs", &mut docs)?;
    docs.retain(|path, _| path.ends_with(".md") && path.matches('/').count() == 1);
    files.append(&mut docs);
    let listed = files.iter().map(|(name, digest)| format!("{digest}  {name}\n"));
    Ok(Digest::of(listed.collect::<String>().as_bytes()).hex())
}

/// Adds the file at `relative`, or all files below that folder except caches.
pub fn collect(root: &Path, relative: &str, files: &mut BTreeMap<String, String>) -> Result<()> {
    let path = root.join(relative);
    let name = relative.rsplit('/').next().unwrap_or_default();
    if !path.exists() || matches!(name, "__pycache__" | "snapshots") || name.starts_with('.') {
        return Ok(());
    }
    if path.is_file() {
        files.insert(relative.to_owned(), Digest::of_file(&path)?.hex());
        return Ok(());
    }
    for entry in fs::read_dir(&path).with_context(|| format!("listing {}", path.display()))? {
        let name = entry?.file_name();
        collect(root, &format!("{relative}/{}", name.to_string_lossy()), files)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_source_changes_the_digest_and_a_cache_does_not() {
        let root = tempfile::tempdir().unwrap();
        let source = root.path().join("engine/src");
        fs::create_dir_all(source.join("__pycache__")).unwrap();
        let digest = || {
            let mut files = BTreeMap::new();
            collect(root.path(), "engine", &mut files).unwrap();
            files
        };
        fs::write(source.join("lib.rs"), "1").unwrap();
        let first = digest();
        for other in ["__pycache__/x", ".hidden"] {
            fs::write(source.join(other), "1").unwrap();
        }
        assert_eq!(digest(), first);
        fs::write(source.join("lib.rs"), "2").unwrap();
        assert_ne!(digest(), first);
    }

    #[test]
    fn of_this_checkout() {
        for file in FILES {
            assert!(paths::root().join(file).exists(), "{file}");
        }
        assert_eq!(sources(paths::root()).unwrap().len(), 64, "a digest");
    }
}
