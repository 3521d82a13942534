//! SHA-256 in hexadecimal and in RECORD's base64.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use crate::scratch;
use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// A finished SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Of bytes at hand.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Of a file, streamed.
    pub fn of_file(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
        let mut hasher = Hasher::default();
        // A buffer that suits gigabytes.
        let mut file = BufReader::with_capacity(256 << 10, file);
        io::copy(&mut file, &mut hasher).with_context(|| format!("reading {}", path.display()))?;
        Ok(hasher.finish())
    }

    /// As RECORD writes it: urlsafe base64 without padding.
    pub fn base64(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// As everyone else writes it.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// `FILE.sha256` beside a file.
pub fn beside(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(".sha256");
    path.into()
}

/// Writes `FILE.sha256` beside a file whose hash is known, in one step, as sha256sum does: who has both can check every byte.
pub fn write_beside(file: &Path, hex: &str) -> Result<()> {
    let name = file.file_name().unwrap_or_default().display();
    scratch::replace(&beside(file), format!("{hex}  {name}\n").as_bytes())
}

/// A SHA-256 in progress.
#[derive(Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// The result.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl Write for Hasher {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.update(buffer);
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_beside_a_file_is_as_sha256sum_writes_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.whl");
        write_beside(&file, "ab12").unwrap();
        let text = std::fs::read_to_string(folder.path().join("a.whl.sha256")).unwrap();
        assert_eq!(text, "ab12  a.whl\n");
    }

    #[test]
    fn both_spellings_of_the_empty_hash() {
        let digest = Digest::of(b"");
        assert_eq!(digest.hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(digest.base64(), "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
    }
}
