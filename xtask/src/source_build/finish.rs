//! Turns the wheel of PyTorch's own build into a fork wheel: adds our package and metadata, changes nothing else,
//! and verifies it like a repacked one.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::plan::Plan;
use crate::build_wheel::compile::LIBRARY;
use crate::build_wheel::{contents, inputs, library};
use crate::support::hash::Digest;
use crate::support::paths;
use crate::support::progress::Step;
use crate::support::scratch::Scratch;
use crate::wheel::header::in_wheel;
use crate::wheel::name::WheelName;
use crate::wheel::platform::Floors;
use crate::wheel::provenance::{self, Inputs, Named, Provenance};
use crate::wheel::result::{self, Promise};
use crate::wheel::verify::{self, Checked};
use crate::wheel::writer::{self, Contents, NewFile};
use crate::wheel::{metadata, sbom};

/// The library with ours in its NEEDED list, in a wheel built from source.
const ASKS: &str = "torch/lib/libtorch_cuda.so";

/// The results of a build.
pub struct Made {
    /// The fork wheel.
    pub path: PathBuf,
    /// Its parsed name.
    pub name: WheelName,
    /// The system requirements of our library.
    pub floors: Floors,
    /// The size of our library.
    pub library_bytes: u64,
    /// Of the whole wheel.
    pub sha256: String,
}

/// Writes it, reads it back, and only then gives it its name.
pub fn write(plan: &Plan, built: &Path, step: &Step) -> Result<Made> {
    let file_name = built.file_name().unwrap_or_default().to_string_lossy();
    let name = WheelName::parse(&file_name)?;
    let mut base = verify::open(built)?;
    let library = base
        .bytes(&format!("torch/lib/{LIBRARY}"))
        .with_context(|| format!("PyTorch's build has put no {LIBRARY} into {file_name}"))?;
    let floors = Floors::of(&library)?;
    let header = in_wheel(&plan.header).context("the header has no place in a wheel")?;
    let found = Digest::of(base.text(&header)?.as_bytes()).hex();
    let provenance = Provenance {
        format: 1,
        version: plan.version.clone(),
        torch_version: plan.release.version.clone(),
        inputs: inputs_of(plan, &file_name, &Digest::of_file(built)?.hex())?,
        header_sha256: (plan.release.header_sha256.clone(), found),
        library_sha256: Digest::of(&library).hex(),
        program_sha256: None,
        floors: floors
            .newest
            .iter()
            .map(|(set, it)| (set.clone(), it.to_string()))
            .collect(),
    };
    let contents = assemble(&mut base, &name, &provenance)?;
    let path = plan.out.join(name.to_string());
    let unfinished = Scratch::file(&path)?;
    writer::write(&mut base, &contents, unfinished.path(), step)
        .with_context(|| format!("writing {}", path.display()))?;
    let promised = WheelName {
        version: plan.version.clone(),
        ..name.clone()
    };
    let promise = Promise {
        name: &promised,
        header: (&header, &plan.release.patched_sha256),
        provenance: &provenance,
        library: LIBRARY,
        asks: ASKS,
        program: None,
    };
    result::verify(unfinished.path(), &promise, step)
        .context("the wheel is not what was promised")?;
    let sha256 = Digest::of_file(unfinished.path())?.hex();
    unfinished.publish(&path)?;
    let library_bytes = library.len() as u64;
    Ok(Made {
        path,
        name,
        floors,
        library_bytes,
        sha256,
    })
}

/// Our files, and PyTorch's texts that list them.
fn assemble(base: &mut Checked, name: &WheelName, provenance: &Provenance) -> Result<Contents> {
    let root = paths::root();
    let stem = base.stem.clone();
    let info = format!("{stem}.dist-info");
    let mut files = contents::ours(root, &info)?;
    let prefix = format!("{info}/licenses/");
    let licences = files.keys().filter_map(|it| it.strip_prefix(&prefix));
    let licences: Vec<String> = licences.map(str::to_owned).collect();
    let licences: Vec<&str> = licences.iter().map(String::as_str).collect();
    let mut text = |path: String, contents: Vec<u8>| files.insert(path, NewFile::text(contents));
    let described = base.text(&format!("{info}/METADATA"))?;
    let described = metadata::rewrite_metadata(&described, &name.version, &licences)?;
    text(format!("{info}/METADATA"), described.into());
    let top_level = format!("{info}/top_level.txt");
    if base.rows.contains_key(&top_level) {
        let list = contents::top_level(&base.text(&top_level)?);
        text(top_level, list.into());
    }
    text(
        format!("{info}/{}", provenance::NAME),
        provenance.to_json()?,
    );
    let from = &provenance.inputs.base_wheel;
    let bill = sbom::document(
        ("torch", &name.version),
        Some((&from.name, &provenance.torch_version, &from.sha256)),
        &library::linked_crates(root)?,
    )?;
    text(format!("{info}/{}", sbom::NAME), bill);
    Ok(Contents { stem, files })
}

/// The base is the wheel of PyTorch's own build, which nobody else has, so its inputs are named, too.
fn inputs_of(plan: &Plan, name: &str, sha256: &str) -> Result<Inputs> {
    let mut tools = crate::build_wheel::compile::compilers()?;
    if let Some((_, version)) = &plan.nvcc {
        tools.insert("nvcc".into(), version.clone());
    }
    let patches = plan.series.iter().chain(&plan.source_series);
    let named = patches.map(|it| Named {
        name: it.name.clone(),
        sha256: it.sha256.clone(),
    });
    Ok(Inputs {
        base_wheel: Named {
            name: name.to_owned(),
            sha256: sha256.to_owned(),
        },
        series: plan.release.series.clone(),
        patches: named.collect(),
        pinbuddy: env!("CARGO_PKG_VERSION").into(),
        source_sha256: inputs::sources(paths::root())?,
        tools,
    })
}
