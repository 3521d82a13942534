//! The mark on a plan's file: the last run with it found that it does not fit.
//!
//! It is its owner's right to execute the file, so it is on the file itself: a plan that replaces it has none, a removal takes it along,
//! and no other file is to be listed, counted or cleared away. It is set and taken by one call each, without a lock. Nobody runs a plan.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

/// The right.
const MARK: u32 = 0o100;

/// Whether the file is marked.
pub fn is_marked(found: &Metadata) -> bool {
    found.mode() & MARK != 0
}

/// Marks it, or takes its mark.
///
/// # Errors
///
/// It cannot be: the file is another user's, or its file system keeps no rights or is read-only.
pub fn mark(file: &File, marked: bool) -> io::Result<()> {
    let found = file.metadata()?;
    if is_marked(&found) == marked {
        return Ok(());
    }
    let mut rights = found.permissions();
    let mode = rights.mode() & !MARK;
    rights.set_mode(if marked { mode | MARK } else { mode });
    file.set_permissions(rights)?;
    // Some file systems agree to whatever they are told, and show the same rights for all files.
    match is_marked(&file.metadata()?) == marked {
        true => Ok(()),
        false => Err(io::ErrorKind::Unsupported.into()),
    }
}
