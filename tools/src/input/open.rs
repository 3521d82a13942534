//! Files as they come, or as gzip has compressed them; standard input and pipes, too.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, IsTerminal as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

/// What a reader has at hand at a time: enough for a table's first line.
const BUFFER: usize = 1 << 18;

/// A file that can be read again and again: of what can be read once, such as a pipe, a copy.
#[derive(Debug)]
pub(crate) struct Readable {
    path: PathBuf,
    /// Has no name and lives as long as this.
    _copy: Option<File>,
}

impl Readable {
    /// What the path names, `-` for standard input.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let is_stdin = [Path::new("-"), Path::new("/dev/stdin")].contains(&path);
        let path = if is_stdin {
            // By this name also a socket can be asked what it is.
            Path::new("/proc/self/fd/0")
        } else {
            path
        };
        // A folder is refused where it is read.
        let found = fs::metadata(path)?;
        if found.is_file() || found.is_dir() {
            return Ok(Self { path: path.to_path_buf(), _copy: None });
        }
        let kind = found.file_type();
        let is_terminal = is_stdin && io::stdin().is_terminal();
        if kind.is_block_device() || kind.is_char_device() && !is_terminal {
            // Some never end, and the copy would fill the disk.
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "expected a file or a pipe, found a device"));
        }
        let mut copy = tempfile::tempfile()?;
        if is_stdin {
            io::copy(&mut io::stdin().lock(), &mut copy)?;
        } else {
            io::copy(&mut File::open(path)?, &mut copy)?;
        }
        Ok(Self {
            // Opened by this name it is read from its beginning.
            path: format!("/proc/self/fd/{}", copy.as_raw_fd()).into(),
            _copy: Some(copy),
        })
    }

    /// Reads it from the beginning, without a byte order mark; of what gzip has compressed, what is in it.
    pub(crate) fn open(&self) -> io::Result<Box<dyn BufRead>> {
        let mut file = BufReader::with_capacity(BUFFER, File::open(&self.path)?);
        let mut file: Box<dyn BufRead> = match file.fill_buf()? {
            [0x1f, 0x8b, ..] => {
                let unpacked = MultiGzDecoder::new(file);
                Box::new(BufReader::with_capacity(BUFFER, unpacked))
            }
            _ => Box::new(file),
        };
        if file.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
            file.consume(3);
        }
        Ok(file)
    }
}

/// Reads a file once, `-` for standard input.
pub(crate) fn once(path: &Path) -> io::Result<Box<dyn BufRead>> {
    // What is open by that name stays, also where the copy goes.
    Readable::new(path)?.open()
}
