//! The official wheel: a given file, from the cache, or fetched into it by pip.
//!
//! Invariant: a wheel in the cache is complete, with its SHA-256 beside it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::fits;
use crate::plan::Plan;
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

impl Base {
    /// Hashes a wheel.
    pub fn of(path: PathBuf, name: WheelName) -> Result<Self> {
        let sha256 = Digest::of_file(&path)?.hex();
        Ok(Self { path, name, sha256 })
    }
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

/// A release's wheel for a Python in the user's cache, if any. Looks at names only.
pub fn cached(cache: &Path, release: &Release, python: &Python) -> Option<(PathBuf, WheelName)> {
    let entries = fs::read_dir(folder(cache)).ok()?.flatten();
    let fitting = entries.filter_map(|entry| {
        let name = WheelName::parse(entry.file_name().to_str()?).ok()?;
        let right = name.name == "torch" && name.public_version() == release.version;
        let fits = right && fits::check(&name, python).is_ok();
        (fits && hash::beside(&entry.path()).exists()).then(|| (entry.path(), name))
    });
    fitting.max_by(|a, b| a.0.cmp(&b.0))
}

/// The official wheel of a plan from the cache, fetched first if it is missing or incomplete.
pub fn official(plan: &Plan, tools: &Tools, step: &Step) -> Result<Base> {
    let (cache, release, python) = (&plan.cache, &plan.release, &plan.python);
    if let Some((path, name)) = cached(cache, release, python) {
        step.say("checking the cached wheel");
        let found = Base::of(path, name)?;
        let recorded = fs::read_to_string(hash::beside(&found.path)).unwrap_or_default();
        if recorded.split_whitespace().next() == Some(found.sha256.as_str()) {
            return Ok(found);
        }
        let Base { path, name, .. } = found;
        step.note(&format!(
            "{name} in the cache has changed since it was fetched; fetching it again"
        ));
        fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
    }
    let (fetched, name, _scratch) = fetch(cache, release, python, tools, step)?;
    step.say("hashing");
    let fetched = Base::of(fetched, name)?;
    let path = folder(cache).join(fetched.name.to_string());
    // The hash first: a wheel without one is ignored.
    hash::write_beside(&path, &fetched.sha256)?;
    fs::File::open(&fetched.path)?.sync_all()?;
    fs::rename(&fetched.path, &path)
        .with_context(|| format!("moving the wheel to {}", path.display()))?;
    Ok(Base { path, ..fetched })
}

/// Fetches a release's wheel for a Python without adding it to the cache, into a folder that is deleted on drop.
pub fn fetch(
    cache: &Path,
    release: &Release,
    python: &Python,
    tools: &Tools,
    step: &Step,
) -> Result<(PathBuf, WheelName, Scratch)> {
    let folder = folder(cache);
    disk::require(&folder, ROOM, "fetch the official wheel")?;
    let scratch = Scratch::folder(&folder.join("download"))?;
    let destination = scratch.path().join("wheel");
    let shown = destination.display().to_string();
    let requirement = format!("torch=={}", release.version);
    let options = "download --quiet --no-deps --only-binary=:all: --resume-retries=20 --dest";
    let mut arguments: Vec<&str> = options.split(' ').collect();
    arguments.extend([&*shown, &requirement]);
    let goal = format!("download {requirement}");
    step.note(&goal);
    watch::folder(scratch.path(), step, || {
        pip::run(&tools.python, &arguments, scratch.path(), &goal)
    })?;
    let file = fs::read_dir(&destination)?.flatten().next();
    let file = file.with_context(|| {
        format!("pip said that it downloaded {requirement}, but there is no file")
    })?;
    let (path, name) = at_hand(&file.path(), python)?;
    Ok((path, name, scratch))
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
        let release = versions.find(Some("2.15.0")).unwrap();
        let found = || cached(cache.path(), release, &python311());
        assert_eq!(found().unwrap().0, folder.join(right));
        fs::remove_file(folder.join(format!("{right}.sha256"))).unwrap();
        assert!(found().is_none());
    }

    #[test]
    fn a_wheel_that_is_not_there() {
        insta::assert_snapshot!(
            at_hand(Path::new("/nowhere/torch.whl"), &python311()).unwrap_err()
        );
    }
}
