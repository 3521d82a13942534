//! Reads a finished plug-in from scratch and verifies it, before it gets its name.

use std::path::Path;

use anyhow::{Result, ensure};
use serde::Deserialize;

use super::contents::{MANIFEST, entry_points};
use super::{Library, Program};
use crate::build_wheel::compile::LIBRARY;
use crate::build_wheel::program::IN_WHEEL;
use crate::support::hash::Digest;
use crate::support::progress::Step;
use crate::wheel::name::WheelName;
use crate::wheel::platform::needed;
use crate::wheel::{metadata, provenance, sbom, verify};

#[derive(Deserialize)]
struct Manifest {
    version: String,
    libraries: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    torch: String,
    header_sha256: String,
    file: String,
    sha256: String,
}

/// Verifies every byte against RECORD, and everything that torch, pip and the Python package rely on.
pub fn verify(
    path: &Path,
    name: &WheelName,
    libraries: &[Library],
    program: &Program,
    step: &Step,
) -> Result<()> {
    let mut wheel = verify::open(path)?;
    let info = format!("{}.dist-info", wheel.stem);
    ensure!(
        wheel.stem == format!("{}-{}", name.name, name.version),
        "the .dist-info is {info}"
    );
    let text = wheel.text(&format!("{info}/METADATA"))?;
    let found = metadata::header(&text, "Version");
    ensure!(
        found == Some(&name.version),
        "METADATA has the version {found:?} instead of {}",
        name.version
    );
    let tags = wheel.text(&format!("{info}/WHEEL"))?;
    ensure!(
        metadata::tags(&tags) == name.tags(),
        "WHEEL's tags are not those of {name}"
    );
    let found = wheel.text(&format!("{info}/entry_points.txt"))?;
    ensure!(found == entry_points(), "entry_points.txt says {found:?}");
    ensure!(
        wheel.bytes(IN_WHEEL)? == program.bytes,
        "{IN_WHEEL} is not the program that was compiled"
    );
    wheel.text("pinbuddy/_plugin.py")?;
    wheel.text(&format!("{info}/{}", provenance::NAME))?;
    wheel.text(&format!("{info}/{}", sbom::NAME))?;
    let manifest: Manifest = serde_json::from_str(&wheel.text(MANIFEST)?)?;
    ensure!(
        manifest.version == name.version && manifest.libraries.len() == libraries.len(),
        "{MANIFEST} is not what was written"
    );
    for (listed, library) in manifest.libraries.iter().zip(libraries) {
        let known = &library.provenance;
        ensure!(
            listed.torch == known.torch_version
                && listed.header_sha256 == known.header_sha256.0
                && listed.sha256 == known.library_sha256,
            "{MANIFEST} says something else of torch {}",
            known.torch_version
        );
        let path = format!("pinbuddy/{}", listed.file);
        let bytes = wheel.bytes(&path)?;
        ensure!(
            Digest::of(&bytes).hex() == listed.sha256,
            "{path} is not the library that was compiled"
        );
        let (_, own) = needed(&bytes)?;
        ensure!(
            own.as_deref() == Some(LIBRARY),
            "the SONAME of {path} is {own:?}"
        );
    }
    wheel.verify_all(step, |_| Ok(None))
}
