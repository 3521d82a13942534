//! Checks for free disk space before gigabytes are written.

use std::path::Path;

use anyhow::Result;

use crate::refusal::refuse;

/// Refuses if the file system of `folder`, which need not exist yet, has less than `bytes` free for users other than root.
pub fn require(folder: &Path, bytes: u64, purpose: &str) -> Result<()> {
    let existing = folder.ancestors().find(|it| it.is_dir());
    let Some(status) = existing.and_then(|it| rustix::fs::statvfs(it).ok()) else {
        // The write itself will fail.
        return Ok(());
    };
    let free = status.f_bavail.saturating_mul(status.f_frsize);
    if free >= bytes {
        return Ok(());
    }
    Err(refuse(format!("not enough room in {} to {purpose}", folder.display()))
        .found(format!("{} MB free", free / 1_000_000))
        .expected(format!("{} MB", bytes.div_ceil(1_000_000)))
        .remedy("free some space, then run the same command again")
        .into())
}

/// Refuses an unwritable output folder, or one that cannot be made, before the work starts. Leaves nothing.
pub fn require_writable(folder: &Path) -> Result<()> {
    let folder = std::path::absolute(folder)?;
    let existing = folder.ancestors().find(|it| it.exists());
    let probe = tempfile::Builder::new()
        .prefix(".pinbuddy-")
        .tempfile_in(existing.unwrap_or(&folder))
        .and_then(tempfile::NamedTempFile::close);
    probe.map_err(|error| {
        refuse(format!("{} cannot be written to", folder.display()))
            .found(error.to_string())
            .expected("a folder for the wheel")
            .remedy("pass another one with --out")
            .into()
    })
}

/// Whether the error means that the disk is full.
pub fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    matches!(kind, Some(StorageFull | QuotaExceeded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_room() {
        require(Path::new("/tmp/not/there/yet"), 1, "test").unwrap();
        let error = require(Path::new("/tmp"), u64::MAX, "test").unwrap_err().to_string();
        assert!(error.starts_with("not enough room in /tmp to test"), "{error}");
    }

    #[test]
    fn a_full_disk_is_recognised() {
        let full = std::io::Error::from_raw_os_error(28);
        let error = anyhow::Error::new(full).context("writing the wheel");
        assert!(error.chain().any(is_full));
        assert!(!anyhow::anyhow!("another").chain().any(is_full));
    }

    #[test]
    fn a_file_is_no_folder_and_a_folder_that_can_be_made_is_not_made() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(require_writable(file.path()).is_err());
        assert!(require_writable(&file.path().join("below")).is_err());
        let folder = tempfile::tempdir().unwrap();
        require_writable(&folder.path().join("a/b")).unwrap();
        assert!(!folder.path().join("a").exists());
        let said = require_writable(Path::new("/proc/x")).unwrap_err();
        assert!(said.to_string().starts_with("/proc/x cannot be written to"));
    }
}
