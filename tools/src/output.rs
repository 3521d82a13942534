//! Files that commands write: whole, or not at all.
//!
//! Each is written under a name that nobody can foretell and that is made anew, never through a link, and then gets its
//! own name.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use tempfile::Builder;

type Out<'f> = BufWriter<&'f mut File>;

/// Writes a file beside its place and moves it there, so that nobody reads half of it.
pub(crate) fn write(path: &Path, write: impl FnOnce(&mut Out<'_>) -> io::Result<()>) -> Result<()> {
    write_with(path, 0o666, write)
}

/// The same for a file that only this user may read, as runs write their plans.
pub(crate) fn write_private(
    path: &Path,
    write: impl FnOnce(&mut Out<'_>) -> io::Result<()>,
) -> Result<()> {
    write_with(path, 0o600, write)
}

fn write_with(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut Out<'_>) -> io::Result<()>,
) -> Result<()> {
    let folder = path
        .parent()
        .filter(|it| !it.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let written = (|| {
        let mut part = Builder::new()
            .prefix(path.file_name().unwrap_or_default())
            .suffix(".part")
            // The user's mask takes its share.
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(folder)?;
        let mut to = BufWriter::new(part.as_file_mut());
        write(&mut to)?;
        to.flush()?;
        drop(to);
        part.as_file().sync_all()?;
        part.persist(path)?;
        io::Result::Ok(())
    })();
    written.with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// The names in a folder, but for this one.
    fn others(folder: &Path, but: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
        entries.filter(|it| !it.ends_with(but)).collect()
    }

    #[test]
    fn a_file_is_whole_or_as_it_was_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan");
        let parts = RefCell::new(Vec::new());
        for (text, succeeds) in [("first", true), ("other", false), ("last", true)] {
            let written = write(&path, |to| {
                parts.borrow_mut().extend(others(folder.path(), "plan"));
                to.write_all(text.as_bytes())?;
                if succeeds {
                    Ok(())
                } else {
                    Err(io::ErrorKind::Other.into())
                }
            });
            assert_eq!(written.is_ok(), succeeds);
            assert_eq!(others(folder.path(), "plan"), [""; 0].map(PathBuf::from));
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "last");
        // Each time another name.
        let mut parts = parts.into_inner();
        parts.sort();
        parts.dedup();
        assert_eq!(parts.len(), 3);
    }

    #[test]
    fn rights_are_the_user_s_or_private_while_it_is_written_too() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (shared, private) = (folder.path().join("shared"), folder.path().join("private"));
        let plain = folder.path().join("plain");
        fs::write(&plain, "").unwrap();
        write(&shared, |to| to.write_all(b"text")).unwrap();
        assert_eq!(mode(&shared), mode(&plain));
        write_private(&private, |_| {
            let part = others(folder.path(), "plain");
            let part = part.iter().find(|it| it.extension().is_some());
            assert_eq!(mode(part.unwrap()), 0o600);
            Ok(())
        })
        .unwrap();
        assert_eq!(mode(&private), 0o600);
    }

    #[test]
    fn a_link_is_replaced_and_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, path) = (folder.path().join("victim"), folder.path().join("plan"));
        fs::write(&victim, "text").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        write(&path, |to| to.write_all(b"plan")).unwrap();
        assert_eq!(fs::read_to_string(victim).unwrap(), "text");
        assert_eq!(fs::read_to_string(path).unwrap(), "plan");
    }
}
