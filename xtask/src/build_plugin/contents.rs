//! The contents of the plug-in's wheel: the Python package, a library for each torch, and metadata.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::{Value, json};

use super::Library;
use crate::build_wheel::compile::LIBRARY;
use crate::build_wheel::defaults::{self, Defaults};
use crate::build_wheel::{contents, library, links, program};
use crate::support::hash::Digest;
use crate::support::paths;
use crate::wheel::name::WheelName;
use crate::wheel::provenance::{self, Provenance};
use crate::wheel::sbom;
use crate::wheel::writer::{Contents, NewFile};

/// Where the manifest is that the Python package reads.
pub const MANIFEST: &str = "pinbuddy/plugin.json";

fn manifest(version: &str, libraries: &[Library]) -> Value {
    let listed = libraries.iter().map(|library| {
        let known = &library.provenance;
        json!({
            "cuda": library.cuda,
            "file": file(known),
            "header_sha256": known.header_sha256.0,
            "sha256": known.library_sha256,
            "torch": known.torch_version,
        })
    });
    json!({ "format": 1, "libraries": listed.collect::<Vec<_>>(), "version": version })
}

/// The file of one library, within the package.
pub fn file(provenance: &Provenance) -> String {
    format!("lib/{}/{LIBRARY}", provenance.torch_version)
}

/// What the wheel sets for a library, which is the same for all.
pub fn of_library(library: &Library) -> &Defaults {
    &library.provenance.inputs.defaults
}

/// Every file.
pub fn contents(name: &WheelName, libraries: &[Library], program: &[u8]) -> Result<Contents> {
    let stem = format!("{}-{}", name.name, name.version);
    let dist_info = format!("{stem}.dist-info");
    let root = paths::root();
    let texts = format!("{dist_info}/licenses");
    let mut files = contents::ours(root, ("pinbuddy/include/pinbuddy", &texts, contents::PLUGIN_ENTRY))?;
    let licences = contents::licences(&files, &dist_info);
    let ours = NewFile::library(program.to_vec());
    files.insert(program::IN_WHEEL.to_owned(), ours);
    for library in libraries {
        let path = format!("pinbuddy/{}", file(&library.provenance));
        files.extend(defaults::beside(&path, of_library(library)));
        files.insert(path, NewFile::library(library.bytes.clone()));
    }
    let known: Vec<&Provenance> = libraries.iter().map(|it| &it.provenance).collect();
    let bill = sbom::document(
        (&name.name, &name.version),
        None,
        &library::crates(root, library::WHEEL)?,
        libraries.first().map_or(&Defaults::new(), of_library),
    );
    let papers = json!({
        "format": 1,
        "libraries": known,
        "program_sha256": Digest::of(program).hex(),
    });
    let metadata = metadata(name, libraries, &licences)?;
    let entries = contents::entry_points(String::new(), contents::PLUGIN_ENTRY);
    let manifest = manifest(&name.version, libraries);
    files.insert(MANIFEST.to_owned(), NewFile::json(&manifest)?);
    for (name, file) in [
        ("METADATA", NewFile::text(metadata)),
        ("WHEEL", NewFile::text(wheel(name))),
        ("entry_points.txt", NewFile::text(entries)),
        (provenance::NAME, NewFile::json(&papers)?),
        (sbom::NAME, NewFile::json(&bill)?),
    ] {
        files.insert(format!("{dist_info}/{name}"), file);
    }
    Ok(Contents { stem, files })
}

/// torch is not required: the user chooses it, and pip might replace it.
fn metadata(name: &WheelName, libraries: &[Library], licences: &[String]) -> Result<String> {
    let listed = licences.iter().map(|it| format!("License-File: {it}\n"));
    let listed: String = listed.collect();
    // The same for all libraries.
    let links = libraries.first().map(|it| &it.provenance.inputs.links);
    let links = links.map(links::lines).unwrap_or_default();
    let mut text = format!(
        "Metadata-Version: 2.4\nName: {}\nVersion: {}\n{}\
         Summary: Pinned memory for PyTorch that is warm and fits\n\
         License-Expression: BSD-3-Clause\n{}Requires-Python: >=3.10\nDescription-Content-Type: text/plain\n\n\
         Gives an official PyTorch a pinned-memory allocator that pins ahead of need, fits exactly and\n\
         splits and merges blocks. torch loads it when it is imported. It fits these versions of torch,\n\
         and leaves every other one as it is:\n\n",
        name.name, name.version, links, listed
    );
    for library in libraries {
        writeln!(text, "    {}", library.provenance.torch_version)?;
    }
    Ok(text)
}

fn wheel(name: &WheelName) -> String {
    let tags = name.tags().into_iter().map(|it| format!("Tag: {it}\n"));
    format!(
        "Wheel-Version: 1.0\nGenerator: pinbuddy {}\nRoot-Is-Purelib: false\n{}",
        name.version,
        tags.collect::<String>()
    )
}
