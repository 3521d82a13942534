//! Which kind of place a path names.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The most links that are followed, as the kernel does.
const MOST_LINKS: usize = 40;

/// This process's standard input and output, as files.
const STDIN: &str = "/proc/self/fd/0";
const STDOUT: &str = "/proc/self/fd/1";

/// Where an output goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Standard output, by whatever name.
    Stdout,
    /// A pipe, a device, or what a process has open: written into.
    Stream(PathBuf),
    /// A regular file or none yet, with no link left in its name: replaced.
    File(PathBuf),
}

impl Place {
    /// What the path names.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        // Asked first: the kernel refuses links that strangers left in a folder of all users.
        let found = match fs::metadata(path) {
            Ok(it) if it.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(it) => Some(it),
            Err(why) if why.kind() == io::ErrorKind::NotFound => None,
            Err(why) => return Err(why),
        };
        let place = follow(path)?;
        if is_open_file(&place) {
            let is_stdout =
                fs::canonicalize("/proc/self/fd").is_ok_and(|own| place.parent() == Some(&own) && place.ends_with("1"));
            return Ok(match is_stdout {
                true => Self::Stdout,
                false => Self::Stream(place),
            });
        }
        let Some(found) = found else {
            return Ok(Self::File(place));
        };
        if !found.is_file() {
            return Ok(Self::Stream(place));
        }
        // Replaced, the file would have lost what is printed to it, too.
        let is_stdout = Identity::of_file(Path::new(STDOUT)) == Some(Identity::new(&found));
        Ok(match is_stdout {
            true => Self::Stdout,
            false => Self::File(place),
        })
    }

    /// Which file it is, if it is a regular one.
    pub(super) fn identity(&self) -> Option<Identity> {
        match self {
            Self::Stdout => Identity::of_file(Path::new(STDOUT)),
            Self::Stream(path) | Self::File(path) => Identity::of_file(path),
        }
    }
}

/// Which file of the machine something is, whatever it is called.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn new(file: &Metadata) -> Self {
        Self { device: file.dev(), inode: file.ino() }
    }

    /// A regular file's: others lose nothing when they are written into.
    fn of_file(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        file.is_file().then(|| Self::new(&file))
    }

    /// The same of an input, which may be standard input.
    pub(super) fn of_input(path: &Path) -> Option<Self> {
        if path == Path::new("-") {
            return Self::of_file(Path::new(STDIN));
        }
        Self::of_file(path)
    }
}

/// The folder that a file is in.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Where links lead, also one whose target is not there. Links of /proc are not followed: they stand for what is open,
/// which may have no name.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let place = fs::canonicalize(folder(&path))?.join(name);
        match fs::read_link(&place) {
            Ok(target) if !is_open_file(&place) => path = folder(&place).join(target),
            _ => return Ok(place),
        }
    }
    Err(io::Error::other("too many links"))
}

/// Whether this stands for something that a process has open.
fn is_open_file(place: &Path) -> bool {
    place.starts_with("/proc")
}
