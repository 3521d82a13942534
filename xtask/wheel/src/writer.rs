//! Writes wheels: forks and our own. The only writer of RECORD, and of the order of entries.
//!
//! Invariants: a copied entry keeps its compressed bytes, mode and time. The same inputs give the same bytes,
//! whatever the time, the machine or the order of a folder.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::record::{self, Row};
use super::verify::{Checked, is_signature};
use xtask_support::progress::Step;

/// A file of ours.
#[derive(Clone, Debug)]
pub struct NewFile {
    /// Its contents.
    pub bytes: Vec<u8>,
    /// Libraries have the executable bits, as pip gives them.
    pub executable: bool,
}

impl NewFile {
    /// An ordinary file.
    pub fn text(contents: impl Into<Vec<u8>>) -> Self {
        Self { bytes: contents.into(), executable: false }
    }

    /// A value as JSON, for people, too.
    pub fn json(value: &impl Serialize) -> Result<Self> {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        Ok(Self::text(text))
    }

    /// A shared library.
    pub fn library(contents: Vec<u8>) -> Self {
        Self { bytes: contents, executable: true }
    }
}

/// The files that a wheel adds to its base or replaces; without a base, all its files.
#[derive(Debug, Default)]
pub struct Contents {
    /// `torch-2.15.0+cu132.pinbuddy.0.1.0`: the new stem of .dist-info and .data.
    pub stem: String,
    /// Files by path in the wheel; each replaces the base's file of that path, at the same position.
    pub files: BTreeMap<String, NewFile>,
}

/// Writes `out` from `base`, if there is one, and `contents`.
pub fn write(mut base: Option<&mut Checked>, contents: &Contents, out: &Path, step: &Step) -> Result<()> {
    if let Some(base) = &base {
        step.total(base.archive.entries.iter().map(|entry| entry.size).sum());
    }
    let file = File::create(out).with_context(|| format!("creating {}", out.display()))?;
    let mut writer = Writer {
        zip: ZipWriter::new(BufWriter::with_capacity(1 << 20, file)),
        rows: Vec::new(),
        left: contents.files.clone(),
        dist_info: format!("{}.dist-info/", contents.stem),
    };
    // The .dist-info comes last, as the wheel format recommends; our new files end each part.
    let written = [false, true].into_iter().try_for_each(|metadata| {
        if let Some(base) = &mut base {
            writer.base_entries(base, &contents.stem, metadata, step)?;
        }
        writer.new_entries(metadata)
    });
    match written {
        Ok(()) => writer.finish(),
        Err(error) => {
            // Dropping it would try to complete the archive and print its own error.
            std::mem::forget(writer);
            Err(error)
        }
    }
}

struct Writer {
    zip: ZipWriter<BufWriter<File>>,
    rows: Vec<Row>,
    left: BTreeMap<String, NewFile>,
    dist_info: String,
}

impl Writer {
    fn base_entries(&mut self, base: &mut Checked, stem: &str, metadata: bool, step: &Step) -> Result<()> {
        for index in 0..base.archive.entries.len() {
            let entry = base.archive.entries[index].clone();
            let name = renamed(&entry.name, &base.stem, stem);
            let own = name == format!("{}RECORD", self.dist_info) || is_signature(&name);
            if own || name.starts_with(&self.dist_info) != metadata {
                continue;
            }
            if let Some(file) = self.left.remove(&name) {
                self.add(&name, &file)?;
            } else {
                step.say(name.as_str());
                let raw = base.archive.zip.by_index_raw(index)?;
                self.zip.raw_copy_file_rename(raw, &name).with_context(|| format!("copying {name}"))?;
                if let Some(fingerprint) = base.rows.get(&entry.name) {
                    self.rows.push((name, fingerprint.clone()));
                }
            }
            step.advance(entry.size);
        }
        Ok(())
    }

    fn new_entries(&mut self, metadata: bool) -> Result<()> {
        for (name, file) in std::mem::take(&mut self.left) {
            if name.starts_with(&self.dist_info) == metadata {
                self.add(&name, &file)?;
            } else {
                self.left.insert(name, file);
            }
        }
        Ok(())
    }

    fn add(&mut self, name: &str, file: &NewFile) -> Result<()> {
        self.rows.push(record::row(name, &file.bytes));
        let mode = if file.executable { 0o755 } else { 0o644 };
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(6))
            .last_modified_time(DateTime::default())
            .unix_permissions(mode);
        self.zip.start_file(name, options)?;
        self.zip.write_all(&file.bytes).with_context(|| format!("writing {name}"))
    }

    fn finish(mut self) -> Result<()> {
        let name = format!("{}RECORD", self.dist_info);
        self.rows.push((name.clone(), None));
        let text = record::format(&self.rows);
        self.add(&name, &NewFile::text(text))?;
        let file = self.zip.finish()?.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.sync_all().context("flushing the wheel to disk")
    }
}

/// `torch-2.15.0.dist-info/X` under the fork's stem; other paths unchanged.
fn renamed(name: &str, old: &str, new: &str) -> String {
    match name.strip_prefix(old) {
        Some(rest) if rest.starts_with(".dist-info/") || rest.starts_with(".data/") => {
            format!("{new}{rest}")
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::renamed;

    #[test]
    fn only_the_two_folders_with_the_version_in_their_name() {
        assert_eq!(renamed("torch-2.0.dist-info/RECORD", "torch-2.0", "torch-2.0+x"), "torch-2.0+x.dist-info/RECORD");
        assert_eq!(renamed("torch-2.0.data/scripts/x", "torch-2.0", "torch-2.0+x"), "torch-2.0+x.data/scripts/x");
        assert_eq!(renamed("torch/version.py", "torch-2.0", "torch-2.0+x"), "torch/version.py");
    }
}
