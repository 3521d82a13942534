//! Which kind of place a path names.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// This process's standard input and output, as files.
const STDIN: &str = "/proc/self/fd/0";
const STDOUT: &str = "/proc/self/fd/1";

/// Where an output goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Standard output, by whatever name.
    Stdout,
    /// A pipe or a device: written into.
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
        let stdout = fs::metadata(STDOUT).ok().map(|it| Identity::new(&it));
        // Asked first: the kernel refuses links that strangers left in a folder of all users, and those that lead to themselves.
        match fs::metadata(path) {
            Ok(it) if it.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            // Replaced, a file would have lost what is printed to it, too.
            Ok(it) if stdout == Some(Identity::new(&it)) => Ok(Self::Stdout),
            Ok(it) if !it.is_file() => Ok(Self::Stream(path.to_path_buf())),
            Ok(_) => fs::canonicalize(path).map(Self::File),
            Err(why) if why.kind() == io::ErrorKind::NotFound => follow(path).map(Self::File),
            Err(why) => Err(why),
        }
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
        Self {
            device: file.dev(),
            inode: file.ino(),
        }
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
    path.parent()
        .filter(|it| !it.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Where links lead whose target is not there.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let place = fs::canonicalize(folder(path))?.join(name);
    match fs::read_link(&place) {
        Ok(target) => follow(&folder(&place).join(target)),
        Err(_) => Ok(place),
    }
}
