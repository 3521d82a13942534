//! What a fork wheel is made of, so that a later run can tell whether one is still current.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::build_wheel::fetch::Base;
use crate::build_wheel::plan::Plan;
use crate::python::tools::Tools;
use crate::release::Cuda;
use crate::support::hash::{Digest, Hasher};
use crate::support::paths;
use crate::wheel::provenance::{Inputs, Named};

/// Our files that decide what is in the wheel, relative to the checkout.
const SOURCES: [&str; 21] = [
    "Cargo.toml",
    "Cargo.lock",
    "LICENSE",
    "NOTICE",
    "rust-core/engine/Cargo.toml",
    "rust-core/engine/src",
    "cxx-bridge/Cargo.toml",
    "cxx-bridge/build.rs",
    "cxx-bridge/cpp",
    "cxx-bridge/include",
    "cxx-bridge/python",
    "cxx-bridge/src",
    "xtask/src/build_wheel/assemble.rs",
    "xtask/src/build_wheel/compile.rs",
    "xtask/src/build_wheel/contents.rs",
    "xtask/src/build_wheel/mod.rs",
    "xtask/src/build_wheel/prepare.rs",
    "xtask/src/patch/apply.rs",
    "xtask/src/patch/git.rs",
    "xtask/src/patch/series.rs",
    "xtask/src/wheel",
];

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
    Ok(Inputs {
        base_wheel: Named {
            name: base.name.to_string(),
            sha256: base.sha256.clone(),
        },
        series: plan.release.series.clone(),
        patches: plan
            .series
            .iter()
            .map(|it| Named {
                name: it.name.clone(),
                sha256: it.sha256.clone(),
            })
            .collect(),
        pinbuddy: env!("CARGO_PKG_VERSION").into(),
        source_sha256: sources(paths::root())?,
        tools: versions,
    })
}

/// The digest of all of them.
pub fn sources(root: &Path) -> Result<String> {
    let mut files = BTreeMap::new();
    for source in SOURCES {
        collect(root, source, &mut files)?;
    }
    let mut hasher = Hasher::default();
    for (name, digest) in files {
        writeln!(hasher, "{digest}  {name}")?;
    }
    Ok(hasher.finish().hex())
}

/// Adds the file, or all files below the folder, at `relative`. Tests and caches are no inputs.
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
        collect(
            root,
            &format!("{relative}/{}", name.to_string_lossy()),
            files,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::paths;

    #[test]
    fn every_source_is_where_it_is_looked_for() {
        for source in SOURCES {
            assert!(paths::root().join(source).exists(), "{source}");
        }
    }

    #[test]
    fn a_changed_source_changes_the_digest_and_a_cache_does_not() {
        let root = tempfile::tempdir().unwrap();
        let source = root.path().join("rust-core/engine/src");
        fs::create_dir_all(source.join("__pycache__")).unwrap();
        fs::write(source.join("lib.rs"), "1").unwrap();
        let first = sources(root.path()).unwrap();
        fs::write(source.join("__pycache__/x"), "1").unwrap();
        assert_eq!(sources(root.path()).unwrap(), first);
        fs::write(source.join("lib.rs"), "2").unwrap();
        assert_ne!(sources(root.path()).unwrap(), first);
    }
}
