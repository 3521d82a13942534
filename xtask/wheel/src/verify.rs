//! Verifies an official wheel in one streaming pass, and keeps what compiling needs from it.
//!
//! Order: the cheap refusals first (tags, CUDA, the header), then every byte against RECORD.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::metadata::{self, TorchVersion};
use super::name::WheelName;
use super::reader::Archive;
use super::record::{self, Fingerprint};
use crate::header;
use xtask_support::hash::Digest;
use xtask_support::progress::Step;
use xtask_support::refusal::{Refusal, refuse};

/// Facts of a verified wheel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// `2.15.0+cu132`.
    pub torch_version: String,
    /// `13.2`.
    pub cuda: String,
    /// Of the header that the series changes.
    pub header_sha256: String,
}

/// An archive with its RECORD, not verified yet.
pub struct Checked {
    /// The archive.
    pub archive: Archive,
    /// RECORD, by path.
    pub rows: BTreeMap<String, Fingerprint>,
    /// The stem of the .dist-info folder.
    pub stem: String,
}

/// Opens a wheel and compares its list of entries with RECORD's.
pub fn open(path: &Path) -> Result<Checked> {
    let mut archive = Archive::open(path)?;
    let stems: Vec<String> = archive
        .files()
        .filter_map(|entry| entry.name.strip_suffix(".dist-info/RECORD"))
        .filter(|stem| !stem.contains('/'))
        .map(str::to_owned)
        .collect();
    let [stem] = <[String; 1]>::try_from(stems).map_err(|stems| {
        let found = format!("{} .dist-info folders with a RECORD", stems.len());
        archive.corrupt(&found, "one, with a list of every file and its hash")
    })?;
    let own = format!("{stem}.dist-info/RECORD");
    let text = archive.text(&own)?.unwrap_or_default();
    let rows =
        record::parse(&text).map_err(|error| archive.corrupt(&format!("{error:#}"), "a RECORD that can be read"))?;
    for entry in archive.files() {
        // Only RECORD's signatures may be missing from it.
        if !rows.contains_key(&entry.name) && !is_signature(&entry.name) {
            let found = format!("{} is in the archive, but not in RECORD", entry.name);
            return Err(archive.corrupt(&found, "every file listed").into());
        }
    }
    let unhashed = rows.iter().find(|(path, row)| row.is_none() && **path != own && !is_signature(path));
    if let Some((path, _)) = unhashed {
        let found = format!("{path} has no hash in RECORD");
        return Err(archive.corrupt(&found, "a hash for every file").into());
    }
    let present: std::collections::HashSet<&str> = archive.files().map(|entry| entry.name.as_str()).collect();
    if let Some(missing) = rows.keys().find(|path| !present.contains(path.as_str())) {
        let found = format!("{missing} is in RECORD, but not in the archive");
        return Err(archive.corrupt(&found, "every listed file").into());
    }
    Ok(Checked { archive, rows, stem })
}

/// `RECORD.jws` and `RECORD.p7s` sign a RECORD that a fork no longer has.
pub fn is_signature(name: &str) -> bool {
    name.ends_with(".dist-info/RECORD.jws") || name.ends_with(".dist-info/RECORD.p7s")
}

impl Checked {
    /// A small text whose hash is RECORD's.
    pub fn text(&mut self, name: &str) -> Result<String> {
        let Some(text) = self.archive.text(name)? else {
            let found = format!("no {name}");
            return Err(self.archive.corrupt(&found, "a torch wheel").into());
        };
        self.compare(name, Digest::of(text.as_bytes()), text.len() as u64)?;
        Ok(text)
    }

    /// An entry's contents, unverified.
    pub fn bytes(&mut self, name: &str) -> Result<Vec<u8>> {
        let bytes = self.archive.bytes(name)?;
        bytes.with_context(|| format!("no {name}"))
    }

    /// Verifies every entry against its row. `sink_for` says where the contents go, if anywhere.
    pub fn verify_all(
        &mut self,
        step: &Step,
        mut sink_for: impl FnMut(&str) -> Result<Option<Box<dyn Write>>>,
    ) -> Result<()> {
        step.total(self.archive.entries.iter().map(|entry| entry.size).sum());
        for index in 0..self.archive.entries.len() {
            let entry = self.archive.entries[index].clone();
            if entry.folder {
                continue;
            }
            let mut sink = sink_for(&entry.name)?.unwrap_or_else(|| Box::new(io::sink()));
            let (digest, size) = self.archive.stream(index, &mut sink)?;
            sink.flush().with_context(|| format!("extracting {}", entry.name))?;
            self.compare(&entry.name, digest, size)?;
            step.advance(size);
        }
        Ok(())
    }

    fn compare(&self, name: &str, digest: Digest, size: u64) -> Result<()> {
        let Some(Some((hash, length))) = self.rows.get(name) else {
            return Ok(());
        };
        let found = format!("sha256={}", digest.base64());
        if *hash == found && *length == size {
            return Ok(());
        }
        let found = format!("{name}: {found}, {size} bytes");
        let expected = format!("{hash}, {length} bytes (RECORD)");
        Err(self.archive.corrupt(&found, &expected).into())
    }
}

/// What a wheel has to be.
pub struct Expected<'a> {
    /// The wheel's own name.
    pub name: &'a WheelName,
    /// The expected release: `2.15.0`.
    pub release: &'a str,
    /// The header's path in the wheel.
    pub header: &'a str,
    /// The header's SHA-256.
    pub header_sha256: &'a str,
    /// The cache folder of headers, for a remedy that shows their difference.
    pub cache: &'a Path,
}

/// Verifies the whole wheel and extracts what compiling needs into `tree`.
pub fn verify(path: &Path, expected: &Expected<'_>, tree: &Path, step: &Step) -> Result<Facts> {
    let mut wheel = open(path)?;
    let facts = check_identity(&mut wheel, expected)?;
    wheel.verify_all(step, |name| {
        if !needed_to_compile(name) {
            return Ok(None);
        }
        let file = tree.join(name);
        let parent = file.parent().unwrap_or(tree);
        fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
        let file = File::create(&file).with_context(|| format!("creating {}", file.display()))?;
        Ok(Some(Box::new(BufWriter::new(file))))
    })?;
    Ok(facts)
}

/// The checks of [`verify`] that need only a few small files: for a wheel whose bytes were verified earlier under another
/// file name, or one of which only the header is wanted, which is in the cache afterwards.
pub fn identify(path: &Path, expected: &Expected<'_>) -> Result<Facts> {
    check_identity(&mut open(path)?, expected)
}

/// Refuses what is not the official CUDA build of a release. Its header may be any, and the bytes that this leaves out, too.
pub fn official(path: &Path, name: &WheelName, release: &str) -> Result<()> {
    check_official(&mut open(path)?, name, release).map(drop)
}

/// The checks that need only a few small files: name, tags, release, CUDA, header.
fn check_identity(wheel: &mut Checked, expected: &Expected<'_>) -> Result<Facts> {
    let (torch_version, cuda) = check_official(wheel, expected.name, expected.release)?;
    let header = wheel.text(expected.header)?;
    let header_sha256 = header::check(&header, expected, &wheel.archive.shown)?;
    Ok(Facts { torch_version, cuda, header_sha256 })
}

/// Returns the versions of torch and of CUDA.
fn check_official(wheel: &mut Checked, name: &WheelName, release: &str) -> Result<(String, String)> {
    let shown = wheel.archive.shown.clone();
    let dist_info = format!("{}.dist-info", wheel.stem);
    let metadata = wheel.text(&format!("{dist_info}/METADATA"))?;
    let inside = metadata::header(&metadata, "Version").unwrap_or_default();
    if inside != name.version {
        return Err(renamed(&shown, &name.version, inside, "METADATA").into());
    }
    let tags = wheel.text(&format!("{dist_info}/WHEEL"))?;
    let (mut inside, mut outside) = (metadata::tags(&tags), name.tags());
    inside.sort_unstable();
    outside.sort_unstable();
    if inside != outside {
        let (outside, inside) = (outside.join(", "), inside.join(", "));
        return Err(renamed(&shown, &outside, &inside, "WHEEL").into());
    }
    let torch = TorchVersion::parse(&wheel.text("torch/version.py")?)?;
    let fork = torch.version.contains("pinbuddy");
    if torch.version.split('+').next() != Some(release) || fork {
        let remedy = match fork {
            true => "it is a fork already: pass the official wheel, or leave --wheel out to fetch it",
            false => "pass --torch with the wheel's own version, or another wheel",
        };
        return Err(refuse(format!("{shown} is not the official torch {release}"))
            .found(format!("torch {} (torch/version.py)", torch.version))
            .expected(format!("torch {release}"))
            .remedy(remedy)
            .into());
    }
    let Some(cuda) = torch.cuda.clone() else {
        let kind = torch.hip.as_ref().map_or("the CPU build".into(), |hip| format!("the ROCm {hip} build"));
        return Err(refuse(format!("{shown} is a build without CUDA, which has no pinned memory to serve"))
            .found(format!("torch {}, {kind}", torch.version))
            .expected("a CUDA build")
            .remedy("leave --wheel out to fetch the CUDA build, or pass a wheel of one")
            .into());
    };
    Ok((torch.version, cuda))
}

fn renamed(shown: &str, outside: &str, inside: &str, file: &str) -> Refusal {
    refuse(format!("{shown} was renamed: its name and its {file} file disagree"))
        .found(outside)
        .expected(format!("{inside} ({file})"))
        .remedy("give the file its original name back, or fetch it again")
}

/// Whether compiling needs this file: headers, and the libraries to link against.
fn needed_to_compile(name: &str) -> bool {
    const LIBRARIES: [&str; 5] = ["libc10.so", "libc10_cuda.so", "libtorch_cpu.so", "libtorch_cuda.so", "libtorch.so"];
    name.starts_with("torch/include/")
        || name.strip_prefix("torch/lib/").is_some_and(|library| LIBRARIES.contains(&library))
}
