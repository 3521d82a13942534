//! A fork wheel from its base: our own files, rewritten metadata and documents.
//!
//! Invariant: a wheel gets its name only after it was read back and verified.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::compile::LIBRARY;
use crate::summary::{self, Summary};
use crate::{contents, library, links};
use xtask_support::hash::{self, Digest};
use xtask_support::paths;
use xtask_support::progress::{Progress, Step};
use xtask_support::scratch::Scratch;
use xtask_wheel::name::WheelName;
use xtask_wheel::platform::Floors;
use xtask_wheel::provenance::{self, Provenance};
use xtask_wheel::result::{self, Promise};
use xtask_wheel::verify::{self, Checked};
use xtask_wheel::writer::{self, Contents, NewFile};
use xtask_wheel::{metadata, sbom};

/// How many steps [`Fork::write`] reports.
pub const STEPS: usize = 2;

/// What makes a fork wheel of another: of the official one, or of one that PyTorch's own build has linked with our library.
pub struct Fork<'a> {
    /// The other wheel.
    pub base: &'a Path,
    /// The result's name.
    pub name: WheelName,
    /// What was compiled or patched and is not in the base, by its path in the wheel.
    pub made: BTreeMap<String, NewFile>,
    /// The result's provenance. One that names a program is of a wheel with the command `pinbuddy`.
    pub provenance: Provenance,
    /// The patched header's path in the wheel, and its pinned hash.
    pub header: (&'a str, &'a str),
    /// The path in the wheel of the library that has ours in its NEEDED list.
    pub asks: &'a str,
    /// The system requirements of all that was compiled.
    pub floors: Floors,
    /// The size of our library.
    pub library_bytes: u64,
}

impl Fork<'_> {
    /// Writes the wheel into a folder. `python` is the interpreter that it is for.
    pub fn write(self, out: &Path, python: &Path, progress: &Progress) -> Result<Summary> {
        let promise = Promise {
            name: &self.name,
            header: self.header,
            library: (LIBRARY, &self.provenance.library_sha256),
            asks: self.asks,
        };
        let published = publish(
            out.join(self.name.to_string()),
            "write the fork wheel",
            progress,
            |file, step| {
                let mut base = verify::open(self.base)?;
                let contents = self.contents(&mut base)?;
                writer::write(Some(&mut base), &contents, file, step)?;
                Ok(contents)
            },
            |file, contents, step| result::verify(file, &promise, contents, step),
        )?;
        let of = summary::Fork {
            series: self.provenance.inputs.series,
            floors: self.floors,
            tag: self.name.platform,
            library_bytes: self.library_bytes,
        };
        Summary::new(published, self.name.version, of, progress.times(), python)
    }

    fn has_program(&self) -> bool {
        self.provenance.program_sha256.is_some()
    }

    /// Every file of the fork that is not the base's.
    fn contents(&self, base: &mut Checked) -> Result<Contents> {
        let (root, name) = (paths::root(), &self.name);
        let stem = format!("torch-{}", name.version);
        let old = format!("{}.dist-info", base.stem);
        let new = format!("{stem}.dist-info");
        let texts = format!("{new}/licenses/pinbuddy");
        let mut files = contents::ours(root, ("torch/include/pinbuddy", &texts, contents::FORK_ENTRY))?;
        let licences = contents::licences(&files, &new);
        files.extend(self.made.clone());
        let mut add = |path: String, file: NewFile| files.insert(path, file);
        let version = "torch/version.py";
        let rewritten = metadata::rewrite_version_py(&base.text(version)?, &name.version)?;
        add(version.into(), NewFile::text(rewritten));
        let described = base.text(&format!("{old}/METADATA"))?;
        let more = &self.provenance.inputs.links;
        links::check_beside(more, &described)?;
        let more = links::lines(more);
        let described = metadata::rewrite_metadata(&described, &name.version, &licences, &more)?;
        add(format!("{new}/METADATA"), NewFile::text(described));
        let tags = metadata::rewrite_wheel(&base.text(&format!("{old}/WHEEL"))?, &name.tags())?;
        add(format!("{new}/WHEEL"), NewFile::text(tags));
        let mut listed = |file: &str| {
            let path = format!("{old}/{file}");
            let is_there = base.rows.contains_key(&path);
            is_there.then(|| base.text(&path)).transpose()
        };
        if self.has_program() {
            let before = listed("entry_points.txt")?.unwrap_or_default();
            let entries = contents::entry_points(before, contents::FORK_ENTRY);
            add(format!("{new}/entry_points.txt"), NewFile::text(entries));
        }
        if let Some(list) = listed("top_level.txt")? {
            let list = contents::top_level(&list);
            add(format!("{new}/top_level.txt"), NewFile::text(list));
        }
        let papers = NewFile::json(&self.provenance)?;
        add(format!("{new}/{}", provenance::NAME), papers);
        let from = &self.provenance.inputs.base_wheel;
        let base = WheelName::parse(&from.name)?;
        let roots = match self.has_program() {
            true => library::WHEEL,
            false => library::LIBRARY,
        };
        let bill = sbom::document(
            ("torch", &name.version),
            Some((&from.name, base.public_version(), &from.sha256)),
            &library::crates(root, roots)?,
            &self.provenance.inputs.defaults,
        );
        add(format!("{new}/{}", sbom::NAME), NewFile::json(&bill)?);
        Ok(Contents { stem, files })
    }
}

/// Writes a wheel, reads it back beside what was written, and only then gives it its name, with its SHA-256 in a file beside it.
/// Returns both.
pub fn publish(
    path: PathBuf,
    what: &str,
    progress: &Progress,
    write: impl FnOnce(&Path, &Step) -> Result<Contents>,
    verify: impl FnOnce(&Path, &Contents, &Step) -> Result<()>,
) -> Result<(PathBuf, String)> {
    let unfinished = Scratch::file(&path)?;
    let contents = progress
        .step(what, |step| write(unfinished.path(), step).with_context(|| format!("writing {}", path.display())))?;
    progress.step("read it back", |step| {
        verify(unfinished.path(), &contents, step).context("the wheel that was written is invalid")?;
        let sha256 = Digest::of_file(unfinished.path())?.hex();
        unfinished.publish(&path)?;
        hash::write_beside(&path, &sha256)?;
        Ok((path.clone(), sha256))
    })
}
