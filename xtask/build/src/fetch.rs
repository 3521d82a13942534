//! The official wheel: a given file, from the cache, or fetched into it by pip.
//!
//! Invariant: a wheel in the cache is complete, with its SHA-256 beside it, and the official CUDA build: an index in pip's
//! configuration may have forks and other builds under the same release.

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
use xtask_wheel::verify;

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
        return Err(refuse(format!("{name} is not a torch wheel")).expected("torch-VERSION-….whl").into());
    }
    fits::check(&name, python)?;
    Ok((path, name))
}

/// A release's official wheel for a Python in the user's cache, if any. Most of its bytes are not looked at.
pub fn cached(cache: &Path, release: &Release, python: &Python) -> Option<(PathBuf, WheelName)> {
    let entries = fs::read_dir(folder(cache)).ok()?.flatten();
    let fitting = entries.filter_map(|entry| {
        let name = WheelName::parse(entry.file_name().to_str()?).ok()?;
        let right = name.name == "torch" && name.public_version() == release.version;
        let fits = right && fits::check(&name, python).is_ok();
        let (path, version) = (entry.path(), &release.version);
        let is_kept = fits && hash::beside(&path).exists();
        (is_kept && verify::official(&path, &name, version).is_ok()).then_some((path, name))
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
        step.note(&format!("{name} in the cache has changed since it was fetched; fetching it again"));
        fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
    }
    let (fetched, name, _scratch) = fetch(cache, release, python, tools, step)?;
    step.say("hashing");
    let fetched = Base::of(fetched, name)?;
    let path = folder(cache).join(fetched.name.to_string());
    // The hash first: a wheel without one is ignored.
    hash::write_beside(&path, &fetched.sha256)?;
    fs::File::open(&fetched.path)?.sync_all()?;
    fs::rename(&fetched.path, &path).with_context(|| format!("moving the wheel to {}", path.display()))?;
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
    let version = &release.version;
    let requirement = format!("torch=={version}");
    let options = "download --quiet --no-deps --only-binary=:all: --resume-retries=20 --dest";
    let goal = format!("download {requirement}");
    step.note(&goal);
    let ask = |requirement: &str| {
        let mut arguments: Vec<&str> = options.split(' ').collect();
        arguments.extend([&*shown, requirement]);
        watch::folder(scratch.path(), step, || pip::run(&tools.python, &arguments, scratch.path(), &goal))
    };
    // `===` is PyPI's wheel; `==` would prefer a fork of it. PyTorch's own indexes have 2.15.0+cu132 alone.
    match ask(&format!("torch==={version}")) {
        Err(why) if why.to_string().contains(&format!("{version}+")) => ask(&requirement)?,
        asked => asked?,
    }
    let file = fs::read_dir(&destination)?.flatten().next();
    let file = file.with_context(|| format!("pip said that it downloaded {requirement}, but there is no file"))?;
    let (path, name) = at_hand(&file.path(), python)?;
    require_official(&path, &name, version)?;
    Ok((path, name, scratch))
}

/// Refuses what pip has brought in place of the official wheel.
fn require_official(path: &Path, name: &WheelName, release: &str) -> Result<()> {
    verify::official(path, name, release).map_err(|why| {
        let why = why.to_string();
        refuse(format!("pip has fetched {name} as torch {release}"))
            .found(why.lines().next().unwrap_or_default())
            .expected(format!("the official CUDA build of torch {release}"))
            .remedy(
                "an index or folder in pip's configuration offers it (`pip config list` shows them): run this command again \
                 without it, such as with PIP_CONFIG_FILE=/dev/null, and PIP_EXTRA_INDEX_URL, PIP_INDEX_URL and PIP_FIND_LINKS \
                 unset; nothing was kept",
            )
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask_patchkit::fixture::releases;
    use xtask_python::python311;
    use xtask_wheel::writer::{self, Contents, NewFile};

    const OFFICIAL: &str = "torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl";

    /// A wheel of that name, whose torch says these versions of itself and of CUDA.
    fn wheel(folder: &Path, name: &str, torch: &str, cuda: &str) -> (PathBuf, WheelName) {
        let (path, name) = (folder.join(name), WheelName::parse(name).unwrap());
        let stem = format!("torch-{}", name.version);
        let info = format!("{stem}.dist-info");
        let files = [
            ("torch/version.py".into(), format!("__version__ = '{torch}'\ncuda = {cuda}\n")),
            (format!("{info}/METADATA"), format!("Version: {}\n\n", name.version)),
            (format!("{info}/WHEEL"), format!("Tag: {}\n", name.tags()[0])),
        ];
        let files = files.map(|(file, text)| (file, NewFile::text(text)));
        let contents = Contents { stem, files: files.into() };
        writer::write(None, &contents, &path, &Step::silent()).unwrap();
        hash::write_beside(&path, "").unwrap();
        (path, name)
    }

    #[test]
    fn forks_and_builds_without_cuda_are_neither_found_nor_kept() {
        let cache = tempfile::tempdir().unwrap();
        let folder = folder(cache.path());
        fs::create_dir(&folder).unwrap();
        let versions = releases();
        let release = versions.find(Some("2.15.0")).unwrap();
        let found = || cached(cache.path(), release, &python311());
        let other = |local: &str, cuda: &str| {
            let torch = format!("2.15.0{local}");
            let file = OFFICIAL.replace("2.15.0", &torch);
            let (path, name) = wheel(&folder, &file, &torch, cuda);
            require_official(&path, &name, "2.15.0").unwrap_err()
        };
        other("+cpu", "None");
        other("+rocm7", "None");
        other("", "None");
        insta::assert_snapshot!(other("+cu132.pinbuddy.0.1.0", "'13.2'"));
        assert!(found().is_none());
        let right = wheel(&folder, OFFICIAL, "2.15.0+cu132", "'13.2'");
        assert_eq!(found().unwrap(), right);
        let other_cuda = OFFICIAL.replace("2.15.0", "2.15.0+cu126");
        let right = wheel(&folder, &other_cuda, "2.15.0+cu126", "'12.6'");
        require_official(&right.0, &right.1, "2.15.0").unwrap();
    }

    #[test]
    fn only_a_fitting_wheel_with_its_hash_counts_as_cached() {
        let cache = tempfile::tempdir().unwrap();
        let folder = folder(cache.path());
        fs::create_dir(&folder).unwrap();
        for name in [OFFICIAL, &OFFICIAL.replace("cp311", "cp312"), &OFFICIAL.replace("2.15", "2.14")] {
            wheel(&folder, name, "2.15.0+cu132", "'13.2'");
        }
        let versions = releases();
        let release = versions.find(Some("2.15.0")).unwrap();
        let found = || cached(cache.path(), release, &python311());
        assert_eq!(found().unwrap().0, folder.join(OFFICIAL));
        fs::remove_file(folder.join(format!("{OFFICIAL}.sha256"))).unwrap();
        assert!(found().is_none());
    }

    #[test]
    fn a_wheel_that_is_not_there() {
        insta::assert_snapshot!(at_hand(Path::new("/nowhere/torch.whl"), &python311()).unwrap_err());
    }
}
