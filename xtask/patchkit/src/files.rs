//! Files of a source tree in memory, and patches applied to copies of them.
//!
//! Invariant: writes nothing outside a temporary folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::git::{self, Direction};
use super::series::Patch;

/// Contents by upstream path; none where there is no such file.
pub type Files = BTreeMap<String, Option<Vec<u8>>>;
/// Reads a file by its upstream path.
pub type Reader<'a> = dyn Fn(&str) -> Result<Option<Vec<u8>>> + 'a;

/// The patch that stopped a series.
#[derive(Debug)]
pub struct Stuck {
    /// By its file name.
    pub patch: String,
    /// git's message.
    pub git: String,
}

/// The files after the patches, applied in this order.
pub fn apply(
    order: &[&Patch],
    before: &Files,
    direction: Direction,
) -> Result<Result<Files, Stuck>> {
    let work = tempfile::tempdir().context("making a folder to patch in")?;
    write(before, work.path())?;
    for patch in order {
        if let Err(git) = git::apply(&patch.path, work.path(), direction)? {
            let patch = patch.name.clone();
            return Ok(Err(Stuck { patch, git }));
        }
    }
    let paths = before.keys();
    let after = paths.map(|path| Ok((path.clone(), read(work.path(), path)?)));
    after.collect::<Result<_>>().map(Ok)
}

/// A file below a folder, where there is one.
pub fn read(folder: &Path, path: &str) -> Result<Option<Vec<u8>>> {
    let path = folder.join(path);
    match fs::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

/// Writes the files below a folder, and removes those that have no contents.
pub(crate) fn write(files: &Files, folder: &Path) -> Result<()> {
    for (path, bytes) in files {
        let file = folder.join(path);
        let done = match bytes {
            Some(bytes) => fs::create_dir_all(file.parent().unwrap_or(folder))
                .and_then(|()| fs::write(&file, bytes)),
            None if file.exists() => fs::remove_file(&file),
            None => Ok(()),
        };
        done.with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

/// Whether lines end in CR LF.
pub(crate) fn has_returns(text: &[u8]) -> bool {
    text.windows(2).any(|pair| pair == b"\r\n")
}
