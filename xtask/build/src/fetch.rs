//! The official wheel: a given file, from the cache, or fetched into it by pip.
//!
//! Invariant: a wheel in the cache is complete, with its SHA-256 beside it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::fits;
use xtask_patchkit::release::Release;
use xtask_python::Python;
use xtask_python::pip;
use xtask_python::tools::Tools;
use xtask_support::disk;
use xtask_support::hash::{self, Digest};
use xtask_support::progress::Step;
use xtask_support::refusal::refuse;
use xtask_support::scratch::Scratch;
use xtask_support::watch;
use xtask_wheel::name::WheelName;

/// pip briefly holds the download and a copy; the larger wheels have 920 MB.
pub const ROOM: u64 = 2_000_000_000;

/// A wheel on this machine.
#[derive(Clone, Debug)]
pub struct Base {
    /// Its path.
    pub path: PathBuf,
    /// Its parsed file name.
    pub name: WheelName,
    /// Of the whole file.
    pub sha256: String,
}

/// The folder of fetched wheels in the cache.
pub fn folder(cache: &Path) -> PathBuf {
    cache.join("wheels")
}

/// `--wheel FILE`: checks that the name fits the interpreter; the verifier checks the rest.
pub fn at_hand(path: &Path, python: &Python) -> Result<(PathBuf, WheelName)> {
    let path = fs::canonicalize(path).map_err(|error| {
        refuse(format!("{} cannot be read", path.display()))
            .found(error.to_string())
            .expected("an official torch wheel")
            .remedy("pass the path of one, or leave --wheel out to fetch it")
    })?;
    let name = WheelName::parse(&path.file_name().unwrap_or_default().to_string_lossy())?;
    if name.name != "torch" {
        return Err(refuse(format!("{name} is not a torch wheel"))
            .expected("torch-VERSION-….whl")
            .into());
    }
    fits::check(&name, python)?;
    Ok((path, name))
}

/// What is looked for: a release's wheel for a Python, in a cache.
#[derive(Clone, Copy)]
pub struct Wheel<'a> {
    /// The user's cache.
    pub cache: &'a Path,
    /// The release.
    pub release: &'a Release,
    /// The Python.
    pub python: &'a Python,
}

impl Wheel<'_> {
    /// The wheel in the cache, if any. Looks at names only.
    pub fn cached(self) -> Option<(PathBuf, WheelName)> {
        let entries = fs::read_dir(folder(self.cache)).ok()?.flatten();
        let fitting = entries.filter_map(|entry| {
            let name = WheelName::parse(entry.file_name().to_str()?).ok()?;
            let right = name.name == "torch" && name.public_version() == self.release.version;
            let fits = right && fits::check(&name, self.python).is_ok();
            (fits && hash::beside(&entry.path()).exists()).then(|| (entry.path(), name))
        });
        fitting.max_by(|a, b| a.0.cmp(&b.0))
    }

    /// The wheel from the cache, fetched first if it is missing or incomplete.
    pub fn official(self, tools: &Tools, step: &Step) -> Result<Base> {
        if let Some((path, name)) = self.cached() {
            step.say("checking the cached wheel");
            let sha256 = Digest::of_file(&path)?.hex();
            let recorded = fs::read_to_string(hash::beside(&path)).unwrap_or_default();
            if recorded.split_whitespace().next() == Some(sha256.as_str()) {
                return Ok(Base { path, name, sha256 });
            }
            step.note(&format!(
                "{name} in the cache has changed since it was fetched; fetching it again"
            ));
            fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
        let (fetched, name, _scratch) = self.fetch(tools, step)?;
        step.say("hashing");
        let sha256 = Digest::of_file(&fetched)?.hex();
        let path = folder(self.cache).join(name.to_string());
        // The hash first: a wheel without one is ignored.
        hash::write_beside(&path, &sha256)?;
        fs::File::open(&fetched)?.sync_all()?;
        fs::rename(&fetched, &path)
            .with_context(|| format!("moving the wheel to {}", path.display()))?;
        Ok(Base { path, name, sha256 })
    }

    /// Fetches the wheel without adding it to the cache, into a folder that is deleted on drop.
    pub fn fetch(self, tools: &Tools, step: &Step) -> Result<(PathBuf, WheelName, Scratch)> {
        let folder = folder(self.cache);
        disk::require(&folder, ROOM, "fetch the official wheel")?;
        let scratch = Scratch::folder(&folder.join("download"))?;
        let destination = scratch.path().join("wheel");
        let requirement = format!("torch=={}", self.release.version);
        let arguments = [
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--resume-retries=20",
            "--dest",
            &destination.display().to_string(),
            &requirement,
        ];
        let goal = format!("download {requirement}");
        step.note(&goal);
        watch::folder(scratch.path(), step, || {
            pip::run(&tools.python, &arguments, scratch.path(), &goal)
        })?;
        let file = fs::read_dir(&destination)?.flatten().next();
        let file = file.with_context(|| {
            format!("pip said that it downloaded {requirement}, but there is no file")
        })?;
        let (path, name) = at_hand(&file.path(), self.python)?;
        Ok((path, name, scratch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask_patchkit::fixture::releases;
    use xtask_python::python311;

    #[test]
    fn only_a_fitting_wheel_with_its_hash_counts_as_cached() {
        let cache = tempfile::tempdir().unwrap();
        let folder = folder(cache.path());
        fs::create_dir(&folder).unwrap();
        let right = "torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl";
        for name in [
            right,
            &right.replace("cp311", "cp312"),
            &right.replace("2.15", "2.14"),
        ] {
            fs::write(folder.join(name), "").unwrap();
            fs::write(folder.join(format!("{name}.sha256")), "").unwrap();
        }
        let versions = releases();
        let wheel = Wheel {
            cache: cache.path(),
            release: versions.find(Some("2.15.0")).unwrap(),
            python: &python311(),
        };
        assert_eq!(wheel.cached().unwrap().0, folder.join(right));
        fs::remove_file(folder.join(format!("{right}.sha256"))).unwrap();
        assert!(wheel.cached().is_none());
    }

    #[test]
    fn a_wheel_that_is_not_there() {
        insta::assert_snapshot!(
            at_hand(Path::new("/nowhere/torch.whl"), &python311()).unwrap_err()
        );
    }
}
