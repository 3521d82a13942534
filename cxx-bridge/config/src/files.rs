//! Which files set variables, and whether they may: the site's and the wheel's.
//!
//! The site's file decides the memory of every job on a machine, so it is read with distrust: a regular file, of root or
//! of this user, that nobody else may write. The wheel's lies beside the library, and whoever may write there may write
//! the library, so it is as trustworthy as that. Invariants: nothing here waits (a pipe is opened, and refused), and a
//! file that may not be used is one warning.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::defaults::Layer;
use crate::setting::Origin;

/// The site's file, unless [`VARIABLE`] names another.
pub(crate) const SITE: &str = "/etc/pinbuddy/site.toml";

/// Names another file; empty: none.
pub(crate) const VARIABLE: &str = "PINBUDDY_SITE";

/// The wheel's file, in the library's folder.
pub const BESIDE_LIBRARY: &str = "libtorch_pinbuddy.toml";

/// No file is longer.
const MOST_BYTES: u64 = 64 << 10;

/// The modes that let others write.
const OTHERS_WRITE: u32 = 0o022;

/// This process, as far as files are concerned.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The effective user.
    pub user: u32,
    /// The library's file, if that is known.
    pub library: Option<PathBuf>,
}

impl Surroundings {
    /// The files that set variables, the one that counts first before the other; and warnings.
    pub(crate) fn layers(&self, lookup: impl Fn(&str) -> Option<OsString>) -> (Vec<Layer>, Vec<String>) {
        let (mut layers, mut warnings) = (Vec::new(), Vec::new());
        let named = lookup(VARIABLE).map(PathBuf::from);
        let must_be_there = named.is_some();
        let site = named.unwrap_or_else(|| SITE.into());
        let wheel = self.library.as_ref();
        let wheel = wheel.map(|it| it.with_file_name(BESIDE_LIBRARY));
        let files = [(Origin::Site, Some(site), Some(self.user)), (Origin::Wheel, wheel, None)];
        for (origin, path, user) in files {
            let Some(path) = path.filter(|it| !it.as_os_str().is_empty()) else {
                continue;
            };
            match text(&path, user) {
                Ok(Some(text)) => {
                    let (layer, said) = Layer::parse(origin, &path.to_string_lossy(), &text);
                    layers.push(layer);
                    warnings.extend(said);
                }
                Ok(None) if origin == Origin::Site && must_be_there => warnings
                    .push(format!("{} sets nothing: {VARIABLE} names it, and there is no such file", path.display())),
                Ok(None) => {}
                Err(why) => warnings.push(format!("{} sets nothing: {why}", path.display())),
            }
        }
        (layers, warnings)
    }
}

/// A file's text; none if there is no such file. With `user`, it must be theirs or root's.
fn text(path: &Path, user: Option<u32>) -> Result<Option<String>, String> {
    let options = libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY;
    let opened = OpenOptions::new().read(true).custom_flags(options).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(why) if matches!(why.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(why) => return Err(format!("it cannot be read ({why})")),
    };
    check(&file, user)?;
    let mut bytes = Vec::new();
    let read = file.take(MOST_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|why| format!("it cannot be read ({why})"))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("it has more than {} KiB", MOST_BYTES >> 10));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
    Ok(Some(text))
}

/// Whether the file may be used.
fn check(file: &File, user: Option<u32>) -> Result<(), String> {
    let found = file.metadata();
    let found = found.map_err(|why| format!("it cannot be read ({why})"))?;
    if !found.is_file() {
        return Err("it is no regular file".to_owned());
    }
    user.map_or(Ok(()), |user| trusted(&found, user))
}

/// Whether what was found is this user's or root's, and nobody else may write it.
///
/// # Errors
///
/// Why not, of "it".
pub fn trusted(found: &Metadata, user: u32) -> Result<(), String> {
    let (owner, mode) = (found.uid(), found.mode() & 0o7777);
    if owner != 0 && owner != user {
        return Err(format!("it is user {owner}'s, and it must be root's or user {user}'s"));
    }
    if mode & OTHERS_WRITE != 0 {
        return Err(format!("others may write it (mode {mode:o}); chmod go-w makes it usable"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
