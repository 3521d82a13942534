//! Reads a finished wheel of ours from scratch and verifies it, before it gets its name.

use std::path::Path;

use anyhow::{Result, ensure};

use super::metadata::{self, TorchVersion};
use super::name::WheelName;
use super::platform::needed;
use super::writer::Contents;
use super::{provenance, sbom, verify};
use xtask_support::hash::Digest;
use xtask_support::progress::Step;

/// What a finished fork wheel must contain.
pub struct Promise<'a> {
    /// Its future file name.
    pub name: &'a WheelName,
    /// The patched header's path and expected hash.
    pub header: (&'a str, &'a str),
    /// Our library's name in torch/lib, and its expected hash.
    pub library: (&'a str, &'a str),
    /// The path in the wheel of the library that has ours in its NEEDED list.
    pub asks: &'a str,
}

/// Opens a wheel of ours that is to have that name; refuses one whose metadata says something else, or in which a file is
/// not as in `contents`.
pub fn open(path: &Path, name: &WheelName, contents: &Contents) -> Result<verify::Checked> {
    let mut wheel = verify::open(path)?;
    let (info, version) = (format!("{}.dist-info", wheel.stem), &name.version);
    ensure!(wheel.stem == format!("{}-{version}", name.name), "the .dist-info is {info}");
    let metadata = wheel.text(&format!("{info}/METADATA"))?;
    let found = metadata::header(&metadata, "Version");
    ensure!(found == Some(version), "METADATA has the version {found:?} instead of {version}");
    let tags = wheel.text(&format!("{info}/WHEEL"))?;
    ensure!(metadata::tags(&tags) == name.tags(), "WHEEL's tags are not those of {name}");
    for needed in [provenance::NAME, sbom::NAME] {
        wheel.text(&format!("{info}/{needed}"))?;
    }
    for (path, file) in &contents.files {
        ensure!(wheel.bytes(path)? == file.bytes, "{path} is not what was written");
    }
    Ok(wheel)
}

/// Verifies every byte of a fork wheel against RECORD, those of `contents` against these, and the promise.
pub fn verify(path: &Path, promise: &Promise<'_>, contents: &Contents, step: &Step) -> Result<()> {
    let mut wheel = open(path, promise.name, contents)?;
    let version = &promise.name.version;
    let torch = TorchVersion::parse(&wheel.text("torch/version.py")?)?;
    ensure!(torch.version == *version, "torch/version.py has {} instead of {version}", torch.version);
    let (ours, library) = promise.library;
    let ours_path = format!("torch/lib/{ours}");
    for (path, expected) in [promise.header, (&ours_path, library)] {
        let found = Digest::of(&wheel.bytes(path)?).hex();
        ensure!(found == expected, "{path} has the SHA-256 {found}");
    }
    let asks = promise.asks;
    let (names, _) = needed(&wheel.bytes(asks)?)?;
    ensure!(names.iter().any(|name| name == ours), "{asks} needs {names:?}, not {ours}");
    check_soname(&mut wheel, &ours_path, ours)?;
    wheel.verify_all(step, |_| Ok(None))
}

/// Refuses a library that programs would not find loaded under its name.
pub fn check_soname(wheel: &mut verify::Checked, path: &str, name: &str) -> Result<()> {
    let (_, own) = needed(&wheel.bytes(path)?)?;
    ensure!(own.as_deref() == Some(name), "the SONAME of {path} is {own:?}");
    Ok(())
}
