//! The files of a wheel that compiling needs, extracted once and cached by the wheel's hash; and CUDA's headers.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::fetch::Base;
use xtask_patchkit::release::Cuda;
use xtask_python::pip;
use xtask_python::tools::Tools;
use xtask_support::disk;
use xtask_support::hash::Digest;
use xtask_support::progress::Step;
use xtask_support::scratch::Scratch;
use xtask_wheel::verify::{self, Expected, Facts};

const MARKER: &str = "pinbuddy-tree.json";
/// The size of 2.15's, and a margin.
pub const ROOM: u64 = 1_400_000_000;

/// Marker, written last; a tree that does not match it is extracted again.
#[derive(Serialize, Deserialize)]
struct Marker {
    facts: Facts,
    sizes: BTreeMap<String, u64>,
}

/// Verifies and extracts `base`, unless that was done before.
pub fn ensure(cache: &Path, base: &Base, expected: &Expected<'_>, step: &Step) -> Result<(PathBuf, Facts)> {
    let folder = folder(cache, &base.sha256);
    if let Some(facts) = whole(&folder) {
        // The pinned hash may have changed since; this one was computed from verified bytes.
        if facts.header_sha256 == expected.header_sha256 {
            // The bytes were verified, but the file may have another name now.
            verify::identify(&base.path, expected)?;
            step.say("verified before");
            return Ok((folder, facts));
        }
    }
    disk::require(&folder, ROOM, "extract headers and libraries")?;
    let scratch = Scratch::folder(&folder)?;
    let facts = verify::verify(&base.path, expected, scratch.path(), step)?;
    let marker = Marker { facts, sizes: sizes(scratch.path(), scratch.path())? };
    // Flush before the rename, or a power cut could leave a complete-looking tree of empty files.
    let libraries = scratch.path().join("torch/lib");
    for entry in fs::read_dir(&libraries).into_iter().flatten().flatten() {
        File::open(entry.path())?.sync_all()?;
    }
    fs::write(scratch.path().join(MARKER), serde_json::to_vec(&marker)?)?;
    // Another checkout may have extracted it meanwhile, and may be compiling against it.
    if whole(&folder).as_ref() != Some(&marker.facts) {
        scratch.publish(&folder)?;
    }
    Ok((folder, marker.facts))
}

/// The facts of a wheel that was verified earlier.
pub fn facts(cache: &Path, sha256: &str) -> Option<Facts> {
    whole(&folder(cache, sha256))
}

fn folder(cache: &Path, sha256: &str) -> PathBuf {
    cache.join("trees").join(sha256)
}

/// The facts of a tree, if every file still has the size that it was extracted with.
fn whole(folder: &Path) -> Option<Facts> {
    let marker: Marker = serde_json::from_slice(&fs::read(folder.join(MARKER)).ok()?).ok()?;
    let same =
        marker.sizes.iter().all(|(name, size)| fs::metadata(folder.join(name)).is_ok_and(|data| data.len() == *size));
    same.then_some(marker.facts)
}

fn sizes(root: &Path, folder: &Path) -> Result<BTreeMap<String, u64>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))? {
        let entry = entry?;
        let data = entry.metadata()?;
        if data.is_dir() {
            all.extend(sizes(root, &entry.path())?);
        } else if let Ok(name) = entry.path().strip_prefix(root) {
            all.insert(name.to_string_lossy().into_owned(), data.len());
        }
    }
    Ok(all)
}

/// Installs the CUDA headers of `cuda` into the cache, once. Returns their folders.
pub fn ensure_cuda(cache: &Path, cuda: &Cuda, tools: &Tools, step: &Step) -> Result<Vec<PathBuf>> {
    let key = Digest::of(cuda.packages.join("\n").as_bytes()).hex();
    let root = cache.join("cuda").join(&key[..16]);
    let folders: Vec<PathBuf> = cuda.include.iter().map(|it| root.join(it)).collect();
    if folders.iter().all(|it| it.is_dir()) {
        return Ok(folders);
    }
    let packages: Vec<&str> = cuda.packages.iter().map(String::as_str).collect();
    pip::install_into(&tools.python, &packages, true, &root, step)?;
    let first = folders.first().unwrap_or(&root);
    anyhow::ensure!(first.join("cuda_runtime_api.h").exists(), "{} has no cuda_runtime_api.h", first.display());
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_written_tree_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("torch")).unwrap();
        fs::write(folder.path().join("torch/header.h"), "text").unwrap();
        assert_eq!(whole(folder.path()), None, "no marker");
        let facts = Facts { torch_version: "2.15.0+cu132".into(), cuda: "13.2".into(), header_sha256: String::new() };
        let marker = Marker { facts: facts.clone(), sizes: sizes(folder.path(), folder.path()).unwrap() };
        fs::write(folder.path().join(MARKER), serde_json::to_vec(&marker).unwrap()).unwrap();
        assert_eq!(whole(folder.path()), Some(facts));
        fs::write(folder.path().join("torch/header.h"), "te").unwrap();
        assert_eq!(whole(folder.path()), None, "a file is shorter");
    }
}
