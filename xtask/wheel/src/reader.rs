//! Opens an untrusted wheel. Refuses entries that would be written outside the target folder, entries that hide one
//! another, and entries that unpack to more than the limit. Knows nothing of torch.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::Path;

use anyhow::{Context, Result};
use zip::{CompressionMethod, ZipArchive};

use xtask_support::hash::{Digest, Hasher};
use xtask_support::refusal::{Refusal, refuse};

/// Unpacked size limits of one entry, and of all together.
const LARGEST_ENTRY: u64 = 8 << 30;
const LARGEST_TOTAL: u64 = 32 << 30;
/// Size limit of texts such as METADATA and RECORD, which are read whole.
const LARGEST_TEXT: u64 = 64 << 20;

/// A wheel with a sound list of entries. Their contents are not verified yet.
pub struct Archive {
    /// The zip crate's view of it.
    pub zip: ZipArchive<BufReader<File>>,
    /// One for each entry, in the archive's order.
    pub entries: Vec<Entry>,
    /// The file name, for messages.
    pub shown: String,
}

/// An entry as the central directory describes it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its path.
    pub name: String,
    /// Its unpacked size.
    pub size: u64,
    /// A folder, which RECORD does not list.
    pub folder: bool,
}

impl Archive {
    /// Opens and checks the list of entries.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
        let bytes = file.metadata()?.len();
        // The zip crate's raw copies are unreliable beyond 32-bit offsets.
        if bytes > u64::from(u32::MAX) {
            return Err(refuse(format!("{shown} is larger than 4 GiB"))
                .found(format!("{bytes} bytes"))
                .expected("an archive without 64-bit offsets, as all official torch wheels are")
                .remedy("use the official wheel of the release")
                .into());
        }
        let zip = ZipArchive::new(BufReader::with_capacity(256 << 10, file)).map_err(|error| {
            let found = format!("{bytes} bytes, and: {error}");
            corrupt(&shown, &found, "a whole zip archive")
        })?;
        let mut archive = Self { zip, entries: Vec::new(), shown };
        archive.check().map_err(|reason| archive.corrupt(&reason, "a wheel as pip would take it"))?;
        Ok(archive)
    }

    fn check(&mut self) -> Result<(), String> {
        if self.zip.has_duplicate_names() {
            return Err("two entries with one name".into());
        }
        self.zip.validate_header_consistency().map_err(said)?;
        if self.zip.has_overlapping_entries().map_err(said)? {
            return Err("entries that share bytes".into());
        }
        let mut total: u64 = 0;
        for index in 0..self.zip.len() {
            let file = self.zip.by_index_raw(index).map_err(said)?;
            let name = file.name().map_err(said)?.into_owned();
            check_name(&name)?;
            if file.is_symlink() {
                return Err(format!("a symbolic link: {name:?}"));
            }
            if file.encrypted() {
                return Err(format!("an encrypted entry: {name:?}"));
            }
            if !matches!(file.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
                return Err(format!("a compression that wheels do not use: {} in {name:?}", file.compression()));
            }
            total = total.saturating_add(file.size());
            if file.size() > LARGEST_ENTRY || total > LARGEST_TOTAL {
                return Err(format!("{name:?} unpacks to {} bytes", file.size()));
            }
            let folder = name.ends_with('/');
            self.entries.push(Entry { name, size: file.size(), folder });
        }
        self.check_no_file_is_a_folder()
    }

    fn check_no_file_is_a_folder(&self) -> Result<(), String> {
        let files: HashSet<&str> = self.files().map(|entry| entry.name.as_str()).collect();
        for entry in &self.entries {
            let mut path = entry.name.trim_end_matches('/');
            if entry.folder && files.contains(path) {
                return Err(format!("both a file and a folder: {path:?}"));
            }
            while let Some((parent, _)) = path.rsplit_once('/') {
                if files.contains(parent) {
                    return Err(format!("both a file and a folder: {parent:?}"));
                }
                path = parent;
            }
        }
        Ok(())
    }

    /// The refusal of this archive as damaged or malicious.
    pub fn corrupt(&self, found: &str, expected: &str) -> Refusal {
        corrupt(&self.shown, found, expected)
    }

    /// The entries except folders.
    pub fn files(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.folder)
    }

    /// Streams one entry into `sink`; returns the digest of the bytes that were read.
    pub fn stream(&mut self, index: usize, sink: &mut dyn Write) -> Result<(Digest, u64)> {
        let Entry { name, size, .. } = self.entries[index].clone();
        let shown = &self.shown;
        let unsound = |error: &dyn fmt::Display| corrupt(shown, &format!("{name}: {error}"), "an entry that unpacks");
        let file = self.zip.by_index(index).map_err(|error| unsound(&error))?;
        let (mut hasher, mut bytes, mut buffer) = (Hasher::default(), 0, vec![0; 256 << 10]);
        // Reads at most one byte more than announced, which is enough to refuse it.
        let mut file = file.take(size + 1);
        loop {
            let read = match file.read(&mut buffer) {
                Ok(0) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.map_err(|error| unsound(&error))?,
            };
            let part = &buffer[..read];
            sink.write_all(part).with_context(|| format!("extracting {name}"))?;
            hasher.write_all(part)?;
            bytes += read as u64;
        }
        if bytes != size {
            let than = if bytes > size { "more" } else { "less" };
            let found = format!("{name} unpacks to {than} than the {size} bytes that it announces");
            return Err(corrupt(shown, &found, "entries as long as they say").into());
        }
        Ok((hasher.finish(), bytes))
    }

    /// An entry's contents by name, unverified, or `None` if there is no such entry.
    pub fn bytes(&mut self, name: &str) -> Result<Option<Vec<u8>>> {
        let Some(index) = self.entries.iter().position(|entry| entry.name == name) else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        self.stream(index, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// A small text by name, or `None` if there is no such entry.
    pub fn text(&mut self, name: &str) -> Result<Option<String>> {
        let large = |it: &&Entry| it.name == name && it.size > LARGEST_TEXT;
        if let Some(entry) = self.files().find(large) {
            let found = format!("{name} of {} bytes", entry.size);
            let expected = "a text of a few megabytes at most";
            return Err(self.corrupt(&found, expected).into());
        }
        let Some(bytes) = self.bytes(name)? else {
            return Ok(None);
        };
        let text =
            String::from_utf8(bytes).map_err(|_| self.corrupt(&format!("{name} in another encoding"), "UTF-8"))?;
        Ok(Some(text))
    }
}

fn said(error: impl fmt::Display) -> String {
    error.to_string()
}

fn check_name(name: &str) -> Result<(), String> {
    let path = name.strip_suffix('/').unwrap_or(name);
    let bad = path.is_empty()
        || path.contains(['\\', '\0', '\n', '\r'])
        || path.split('/').any(|part| matches!(part, "" | "." | ".."))
        || path.as_bytes().get(1) == Some(&b':');
    if bad { Err(format!("a path that leaves the wheel's folder or is not plain: {name:?}")) } else { Ok(()) }
}

fn corrupt(shown: &str, found: &str, expected: &str) -> Refusal {
    refuse(format!("{shown} is corrupt, truncated or tampered with"))
        .found(found)
        .expected(expected)
        .remedy("delete it and fetch it again; without --wheel, `cargo xtask build-wheel` does so")
}
