//! Files as they come, or as gzip has compressed them.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// What a reader has at hand at a time: enough for a table's first line.
const BUFFER: usize = 1 << 18;

/// Opens a file; of one that gzip has compressed, what is in it.
pub(super) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::with_capacity(BUFFER, File::open(path)?);
    Ok(match file.fill_buf()? {
        [0x1f, 0x8b, ..] => {
            let unpacked = MultiGzDecoder::new(file);
            Box::new(BufReader::with_capacity(BUFFER, unpacked))
        }
        _ => Box::new(file),
    })
}
