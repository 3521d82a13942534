//! Avoids repeated work: an output carries a stamp, the hash of all its inputs.
//!
//! Invariant: a file with a stamp beside it is complete and was made from those inputs.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::hash::{Digest, Hasher};

/// The inputs of an output.
#[derive(Default)]
pub struct Inputs(Hasher);

impl Inputs {
    /// A command line, a version, a setting.
    pub fn text(mut self, text: &str) -> Result<Self> {
        // With the length, so that two texts cannot run together.
        write!(self.0, "{} {text}", text.len())?;
        Ok(self)
    }

    /// A file's contents; its path does not count.
    pub fn file(self, path: &Path) -> Result<Self> {
        let hash = Digest::of_file(path)?.hex();
        self.text(&hash)
    }

    /// Makes `output` unless it exists with the stamp of these inputs. If `make` fails, whatever it leaves has no
    /// stamp, so the next call makes it again.
    pub fn make(self, output: &Path, make: impl FnOnce() -> Result<()>) -> Result<()> {
        let (hash, stamp) = (self.0.finish().hex(), stamp(output));
        if output.exists() && fs::read_to_string(&stamp).is_ok_and(|it| it == hash) {
            return Ok(());
        }
        let _ = fs::remove_file(&stamp);
        make()?;
        fs::write(&stamp, hash).with_context(|| format!("writing {}", stamp.display()))
    }
}

fn stamp(output: &Path) -> PathBuf {
    let mut name = OsString::from(output);
    name.push(".stamp");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_made_once_for_each_content_and_again_after_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let (source, output) = (folder.path().join("source"), folder.path().join("output"));
        let made = std::cell::Cell::new(0);
        let make = |flag: &str, works: bool| {
            let inputs = Inputs::default().text(flag)?.file(&source)?;
            inputs.make(&output, || {
                made.set(made.get() + 1);
                fs::write(&output, "made")?;
                anyhow::ensure!(works, "no");
                Ok(())
            })
        };
        for (content, flag, works, expected) in [
            ("one", "-O1", true, 1),
            ("one", "-O1", true, 1),
            ("one", "-O2", true, 2),
            ("two", "-O2", true, 3),
            ("one", "-O1", false, 4),
            ("one", "-O1", true, 5),
        ] {
            fs::write(&source, content).unwrap();
            assert_eq!(make(flag, works).is_ok(), works);
            assert_eq!(made.get(), expected, "{content} {flag}");
        }
        fs::remove_file(&output).unwrap();
        make("-O1", true).unwrap();
        assert_eq!(made.get(), 6, "a stamp alone is nothing");
    }

    #[test]
    fn inputs_do_not_run_into_one_another() {
        let hash = |texts: [&str; 2]| {
            let inputs = Inputs::default().text(texts[0]).unwrap();
            inputs.text(texts[1]).unwrap().0.finish()
        };
        assert_ne!(hash(["ab", "c"]), hash(["a", "bc"]));
    }
}
