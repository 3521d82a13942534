//! Files that commands write: whole, or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

type Out = BufWriter<File>;

/// Writes a file beside its place and moves it there, so that nobody reads half of it.
pub(crate) fn write(path: &Path, write: impl FnOnce(&mut Out) -> io::Result<()>) -> Result<()> {
    write_with(path, 0o666, write)
}

/// The same for a file that only this user may read, as runs write their plans.
pub(crate) fn write_private(
    path: &Path,
    write: impl FnOnce(&mut Out) -> io::Result<()>,
) -> Result<()> {
    write_with(path, 0o600, write)
}

fn write_with(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut Out) -> io::Result<()>,
) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(mode);
    let written = options.open(&part).and_then(|file| {
        let mut to = BufWriter::new(file);
        write(&mut to)?;
        to.flush()?;
        to.get_ref().sync_all()?;
        fs::rename(&part, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written.with_context(|| format!("{} cannot be written", path.display()))
}
