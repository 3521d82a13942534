//! Collects the fork's own files: compiled libraries, patched headers, rewritten metadata and documents.

use anyhow::Result;

use crate::compile::LIBRARY;
use crate::prepare::Prepared;
use crate::{contents, library, program};
use xtask_support::hash::Digest;
use xtask_support::paths;
use xtask_wheel::metadata;
use xtask_wheel::name::WheelName;
use xtask_wheel::platform::Floors;
use xtask_wheel::provenance::{self, Provenance};
use xtask_wheel::sbom;
use xtask_wheel::verify::Checked;
use xtask_wheel::writer::{Contents, NewFile};

/// The results of compiling and linking.
pub struct Made {
    /// libtorch_pinbuddy.so.
    pub library: Vec<u8>,
    /// libtorch.so with our library in its NEEDED list.
    pub libtorch: Vec<u8>,
    /// pinbuddy-tools.
    pub program: Vec<u8>,
    /// The system requirements of all three.
    pub floors: Floors,
    /// The platform tag for these requirements.
    pub tag: String,
}

/// The provenance of a fork wheel made from `ready`, with the patched `header`.
pub fn provenance(ready: &Prepared, header: &str, made: &Made) -> Provenance {
    Provenance {
        program_sha256: Some(Digest::of(&made.program).hex()),
        ..of_library(ready, header, &made.library, &made.floors)
    }
}

/// The provenance of a library that was compiled against `ready`, with the patched `header`.
pub fn of_library(ready: &Prepared, header: &str, library: &[u8], floors: &Floors) -> Provenance {
    Provenance {
        format: 1,
        version: ready.fork_version.clone(),
        torch_version: ready.facts.torch_version.clone(),
        inputs: ready.inputs.clone(),
        header_sha256: (
            ready.facts.header_sha256.clone(),
            Digest::of(&ready.headers[header]).hex(),
        ),
        library_sha256: Digest::of(library).hex(),
        program_sha256: None,
        floors: floors
            .newest
            .iter()
            .map(|(set, version)| (set.clone(), version.to_string()))
            .collect(),
    }
}

/// Every file of the fork that is not the base wheel's.
pub fn assemble(
    official: &mut Checked,
    name: &WheelName,
    ready: &Prepared,
    provenance: &Provenance,
    made: &Made,
) -> Result<Contents> {
    let root = paths::root();
    let old = format!("{}.dist-info", official.stem);
    let stem = format!("torch-{}", name.version);
    let new = format!("{stem}.dist-info");
    let mut files = contents::ours(root, &new)?;
    let licences: Vec<String> = files
        .keys()
        .filter_map(|path| Some(path.strip_prefix(&format!("{new}/licenses/"))?.to_owned()))
        .collect();
    for (path, bytes) in &ready.headers {
        files.insert(path.clone(), NewFile::text(bytes.clone()));
    }
    files.insert(
        format!("torch/lib/{LIBRARY}"),
        NewFile::library(made.library.clone()),
    );
    files.insert(
        program::IN_WHEEL.into(),
        NewFile::library(made.program.clone()),
    );
    files.insert(
        "torch/lib/libtorch.so".into(),
        NewFile::library(made.libtorch.clone()),
    );
    let mut text = |path: String, contents: Vec<u8>| files.insert(path, NewFile::text(contents));
    let version_py = official.text("torch/version.py")?;
    text(
        "torch/version.py".into(),
        metadata::rewrite_version_py(&version_py, &name.version)?.into(),
    );
    let licences: Vec<&str> = licences.iter().map(String::as_str).collect();
    let metadata = official.text(&format!("{old}/METADATA"))?;
    text(
        format!("{new}/METADATA"),
        metadata::rewrite_metadata(&metadata, &name.version, &licences)?.into(),
    );
    let wheel = official.text(&format!("{old}/WHEEL"))?;
    text(
        format!("{new}/WHEEL"),
        metadata::rewrite_wheel(&wheel, &name.tags())?.into(),
    );
    let entry_points = format!("{old}/entry_points.txt");
    let mut entries = if official.rows.contains_key(&entry_points) {
        official.text(&entry_points)?
    } else {
        String::new()
    };
    for (group, entry) in [
        ("console_scripts", contents::SCRIPT),
        (contents::BACKENDS, contents::AUTOLOAD),
    ] {
        if let Some(more) = metadata::add_entry_point(&entries, group, entry) {
            entries = more;
        }
    }
    text(format!("{new}/entry_points.txt"), entries.into());
    let top_level = format!("{old}/top_level.txt");
    if official.rows.contains_key(&top_level) {
        let list = contents::top_level(&official.text(&top_level)?);
        text(format!("{new}/top_level.txt"), list.into());
    }
    text(format!("{new}/{}", provenance::NAME), provenance.to_json()?);
    let base = &ready.base;
    let from = (base.name.to_string(), &base.name.version, &base.sha256);
    let bill = sbom::document(
        ("torch", &name.version),
        Some((&from.0, from.1, from.2)),
        &library::crates_in_wheel(root)?,
    )?;
    text(format!("{new}/{}", sbom::NAME), bill);
    Ok(Contents { stem, files })
}
