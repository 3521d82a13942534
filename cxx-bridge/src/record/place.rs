//! Which file a recording is written to, and that it is a safe one.
//!
//! Ranks of one run have the same settings, and must not overwrite each other's files. In a folder where others may
//! write, a name may be a trap: a symbolic link to a file of the user's, or a file of somebody else's. Knows no format.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use pinbuddy_store::launcher;

/// The path of this name, with `{rank}` and `{pid}` replaced. Under a launcher the rank is added if it is missing.
pub(crate) fn path(name: &str) -> PathBuf {
    path_of(name, launcher::rank(), std::process::id())
}

fn path_of(name: &str, rank: Option<usize>, pid: u32) -> PathBuf {
    let text = name.replace("{pid}", &pid.to_string());
    match rank {
        Some(rank) if !text.contains("{rank}") => {
            // Before what tells the format.
            let path = Path::new(&text);
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let file = match path.extension() {
                Some(extension) => format!("{stem}.rank{rank}.{}", extension.to_string_lossy()),
                None => format!("{stem}.rank{rank}"),
            };
            path.with_file_name(file)
        }
        rank => text.replace("{rank}", &rank.unwrap_or(0).to_string()).into(),
    }
}

/// Opens a file to be written from its beginning, for this user alone if it is new. It stays locked while it is open.
///
/// # Errors
///
/// Why it is not written: what was found, and what to do.
pub(super) fn open(path: &Path) -> Result<File, String> {
    let mut options = OpenOptions::new();
    // Neither follows a link nor waits for the reader of a pipe.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    options.write(true).mode(0o600).custom_flags(flags);
    let refused = |why: io::Error| refusal(path, &why);
    let file = match options.clone().create_new(true).open(path) {
        Err(why) if why.kind() == ErrorKind::AlreadyExists => {
            let file = options.open(path).map_err(refused)?;
            check(path, &file)?;
            file
        }
        other => other.map_err(refused)?,
    };
    // Held by this process until it ends, however it ends.
    match file.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => {
            return Err(format!(
                "another process writes {}; with {{pid}} in the name each has its own",
                path.display()
            ));
        }
        // A file system without locks.
        Err(std::fs::TryLockError::Error(_)) => {}
    }
    file.set_len(0).map_err(refused)?;
    Ok(file)
}

/// Whether a file can be made in the folder of this one. Makes none. `to_do`: what to do if not.
///
/// # Errors
///
/// What was found of the folder, and what to do.
pub(crate) fn may_create(path: &Path, to_do: &str) -> Result<(), String> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let shown = folder.display();
    if !folder.exists() {
        return Err(format!("its folder {shown} is not there: make it, or {to_do}"));
    }
    let name = CString::new(folder.as_os_str().as_bytes());
    let name = name.map_err(|_| format!("its folder {shown} has a NUL in its name: {to_do}"))?;
    // SAFETY: a string that ends with a NUL, which lives until the call is over.
    if unsafe { libc::access(name.as_ptr(), libc::W_OK | libc::X_OK) } != 0 {
        let why = io::Error::last_os_error();
        return Err(format!("its folder {shown} cannot be written to ({why}): {to_do}"));
    }
    Ok(())
}

fn refusal(path: &Path, why: &io::Error) -> String {
    if path.as_os_str().is_empty() {
        return "the name of its file is empty: name one".to_owned();
    }
    let path = path.display();
    if why.raw_os_error() == Some(libc::ELOOP) {
        return format!("{path} is a symbolic link; name the file that it points to");
    }
    format!("{path} cannot be written: {why}")
}

fn check(path: &Path, file: &File) -> Result<(), String> {
    let found = file.metadata().map_err(|why| refusal(path, &why))?;
    let path = path.display();
    if !found.is_file() {
        return Err(format!("{path} is no ordinary file; name one, or one that is not there yet"));
    }
    if found.nlink() > 1 {
        return Err(format!("{path} has other names, too; name a file that is not there yet"));
    }
    // SAFETY: it has no conditions.
    if found.uid() != unsafe { libc::geteuid() } {
        return Err(format!("{path} is another user's; name a file that is not there yet"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn ranks_and_processes_have_files_of_their_own() {
        let of = |name, rank| path_of(name, rank, 77).display().to_string();
        assert_eq!(of("a/trace.jsonl", None), "a/trace.jsonl");
        assert_eq!(of("a/trace.jsonl", Some(3)), "a/trace.rank3.jsonl");
        assert_eq!(of("a.b/trace", Some(3)), "a.b/trace.rank3");
        assert_eq!(of("{rank}/t-{pid}", Some(3)), "3/t-77");
        assert_eq!(of("{rank}/t", None), "0/t");
    }

    #[test]
    fn a_file_is_new_or_the_users_own() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let file = open(&at("new")).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        let said = open(&at("new")).unwrap_err();
        assert!(said.contains("another process writes"), "{said}");
        drop(file);
        fs::write(at("old"), "long").unwrap();
        assert_eq!(open(&at("old")).unwrap().metadata().unwrap().len(), 0);

        symlink(at("old"), at("link")).unwrap();
        fs::hard_link(at("old"), at("second")).unwrap();
        fs::write(at("old"), "kept").unwrap();
        for (name, why) in [
            ("link", "is a symbolic link"),
            ("second", "has other names"),
            ("", "cannot be written"),
            ("no/such", "cannot be written"),
        ] {
            let said = open(&at(name)).unwrap_err();
            assert!(said.contains(why), "{name}: {said}");
        }
        assert_eq!(fs::read_to_string(at("old")).unwrap(), "kept");
        let said = open(Path::new("")).unwrap_err();
        assert_eq!(said, "the name of its file is empty: name one");
        let said = open(Path::new("/dev/null")).unwrap_err();
        assert!(said.contains("is no ordinary file"), "{said}");
    }
}
