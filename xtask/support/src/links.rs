//! Copies of folders that take no room: hard links where one file system holds both.
//!
//! Safe because pip replaces installed files instead of writing into them: the linked file in the other environment
//! does not change.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};

/// Links everything below `from`, a file or a folder, to `to`.
pub fn tree(from: &Path, to: &Path) -> Result<()> {
    link(from, to).with_context(|| format!("linking {} to {}", from.display(), to.display()))
}

fn link(from: &Path, to: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if !kind.is_dir() {
        return fs::hard_link(from, to).or_else(|error| match error.kind() {
            // A copy would write into what is there, which may be a link of the original.
            io::ErrorKind::AlreadyExists => Err(error),
            // Another file system, or more links than it allows.
            _ => fs::copy(from, to).map(drop),
        });
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        link(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn files_are_shared_and_links_stay_links_and_more_is_in_the_copy_alone() {
        let root = tempfile::tempdir().unwrap();
        let from = root.path().join("from");
        fs::create_dir_all(from.join("lib")).unwrap();
        fs::write(from.join("lib/libx.so.1"), "x").unwrap();
        symlink("libx.so.1", from.join("lib/libx.so")).unwrap();
        let to = root.path().join("to");
        tree(&from, &to).unwrap();
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        assert_eq!(
            inode(&from.join("lib/libx.so.1")),
            inode(&to.join("lib/libx.so.1"))
        );
        assert_eq!(
            fs::read_link(to.join("lib/libx.so")).unwrap(),
            Path::new("libx.so.1")
        );
        fs::write(to.join("lib/more"), "").unwrap();
        fs::create_dir(to.join("package")).unwrap();
        assert!(!from.join("lib/more").exists() && !from.join("package").exists());

        let again = tree(&from.join("lib/libx.so.1"), &to.join("lib/libx.so.1"));
        assert!(again.is_err(), "it would be written into");
        assert_eq!(fs::read_to_string(from.join("lib/libx.so.1")).unwrap(), "x");
    }
}
