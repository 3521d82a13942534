//! Reads a finished fork wheel from scratch and verifies it, before it gets its name.

use std::path::Path;

use anyhow::{Result, ensure};

use super::metadata::{self, TorchVersion};
use super::name::WheelName;
use super::platform::needed;
use super::provenance::{self, Provenance};
use super::{sbom, verify};
use xtask_support::hash::Digest;
use xtask_support::progress::Step;

/// What the finished wheel must contain.
pub struct Promise<'a> {
    /// Its future file name.
    pub name: &'a WheelName,
    /// The patched header's path and expected hash.
    pub header: (&'a str, &'a str),
    /// Its expected provenance.
    pub provenance: &'a Provenance,
    /// Our library's name in torch/lib.
    pub library: &'a str,
    /// The path in the wheel of the library that has ours in its NEEDED list.
    pub asks: &'a str,
    /// The file of defaults beside our library, if there is one: its path and its bytes.
    pub beside: Option<(&'a str, &'a [u8])>,
    /// The program's path in the wheel, if there is one.
    pub program: Option<&'a str>,
}

/// Opens a wheel of ours that is to have that name; refuses one whose metadata says something else. Returns its
/// .dist-info folder, too.
pub fn open(path: &Path, name: &WheelName) -> Result<(verify::Checked, String)> {
    let mut wheel = verify::open(path)?;
    let (info, version) = (format!("{}.dist-info", wheel.stem), &name.version);
    ensure!(
        wheel.stem == format!("{}-{version}", name.name),
        "the .dist-info is {info}"
    );
    let metadata = wheel.text(&format!("{info}/METADATA"))?;
    let found = metadata::header(&metadata, "Version");
    ensure!(
        found == Some(version),
        "METADATA has the version {found:?} instead of {version}"
    );
    let tags = wheel.text(&format!("{info}/WHEEL"))?;
    ensure!(
        metadata::tags(&tags) == name.tags(),
        "WHEEL's tags are not those of {name}"
    );
    wheel.text(&format!("{info}/{}", provenance::NAME))?;
    wheel.text(&format!("{info}/{}", sbom::NAME))?;
    Ok((wheel, info))
}

/// Verifies every byte against RECORD, and the expectations above.
pub fn verify(path: &Path, promise: &Promise<'_>, step: &Step) -> Result<()> {
    let (mut wheel, info) = open(path, promise.name)?;
    let version = &promise.name.version;
    let torch = TorchVersion::parse(&wheel.text("torch/version.py")?)?;
    ensure!(
        torch.version == *version,
        "torch/version.py has {} instead of {version}",
        torch.version
    );
    let header = Digest::of(wheel.text(promise.header.0)?.as_bytes()).hex();
    ensure!(
        header == promise.header.1,
        "{} has the SHA-256 {header}",
        promise.header.0
    );
    let written: Provenance =
        serde_json::from_str(&wheel.text(&format!("{info}/{}", provenance::NAME))?)?;
    ensure!(
        written == *promise.provenance,
        "{} is not what was written",
        provenance::NAME
    );
    check_loading(&mut wheel, promise)?;
    if let Some((path, bytes)) = promise.beside {
        ensure!(
            wheel.bytes(path)? == bytes,
            "{path} is not what was written"
        );
    }
    if let Some(path) = promise.program {
        let found = Digest::of(&wheel.bytes(path)?).hex();
        ensure!(
            promise.provenance.program_sha256.as_ref() == Some(&found),
            "{path} is not the program that was compiled"
        );
    }
    wheel.verify_all(step, |_| Ok(None))
}

/// A library that programs load has ours in its NEEDED list, under our SONAME.
fn check_loading(wheel: &mut verify::Checked, promise: &Promise<'_>) -> Result<()> {
    let (asks, ours) = (promise.asks, promise.library);
    let (names, _) = needed(&wheel.bytes(asks)?)?;
    ensure!(
        names.iter().any(|name| name == ours),
        "{asks} needs {names:?}, not {ours}"
    );
    let bytes = wheel.bytes(&format!("torch/lib/{ours}"))?;
    ensure!(
        Digest::of(&bytes).hex() == promise.provenance.library_sha256,
        "{ours} is not the library that was compiled"
    );
    let (_, own) = needed(&bytes)?;
    ensure!(
        own.as_deref() == Some(ours),
        "the SONAME of {ours} is {own:?}"
    );
    Ok(())
}
