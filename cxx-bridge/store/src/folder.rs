//! The folder in which plans are kept: which it is, its files, and which of them go.
//!
//! Many processes of many machines use it at once, with no lock: a file is replaced as a whole by whoever writes it, and who finds
//! that one is gone goes on. Knows no plan.
//!
//! Invariants: no more than [`MOST_FILES`] files and [`MOST_BYTES`] bytes stay after a file was written, but for that file; only
//! what has a name of [`Key::name`]'s form and begins with a key is removed, or the rest of a write of such a file that was killed.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::key::{Key, MOST_HEAD};
use crate::mark::is_marked;

/// The most files: ten of each of 25 programs, or of their variants, on a machine of eight GPUs. Reading so many heads takes some ms.
const MOST_FILES: usize = 256;

/// The most bytes, 256 MiB: a plan has some KiB to some MiB.
pub const MOST_BYTES: u64 = 256 << 20;

/// The ending of a plan's file, and of one that is being written.
const ENDING: &str = ".plan";
const UNFINISHED: &str = ".tmp";

/// No write takes so long: what is unfinished and older was killed.
const LONGEST_WRITE: Duration = Duration::from_secs(3600);

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder(PathBuf);

/// A plan in the folder.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its file.
    pub path: PathBuf,
    /// The first line of its file.
    pub key: Key,
    /// How long the file is.
    pub bytes: u64,
    /// When it was last used or written.
    pub used: SystemTime,
    /// Whether the last run with it found that it does not fit.
    pub is_marked: bool,
}

impl Folder {
    /// `BUDDY_PLAN_DIR`, or the user's cache; `None` if no variable says where that is. A relative path counts as none: a
    /// program that changes its folder would have another one.
    pub fn of(set: Option<&str>, lookup: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let is_absolute = |it: &PathBuf| it.is_absolute();
        let absolute = |name: &str| lookup(name).map(PathBuf::from).filter(is_absolute);
        if let Some(set) = set.map(PathBuf::from).filter(is_absolute) {
            return Some(Self(set));
        }
        let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        Some(Self(cache?.join("pinbuddy/plans")))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes it, for this user alone, if it is not there.
    ///
    /// # Errors
    ///
    /// Why it cannot be made.
    pub fn make(&self) -> io::Result<()> {
        let mut how = fs::DirBuilder::new();
        how.recursive(true).mode(0o700).create(&self.0)
    }

    /// The file of the plan with this key.
    pub fn file(&self, key: &Key) -> PathBuf {
        self.0.join(format!("{}{ENDING}", key.name()))
    }

    /// Notes that a plan is used; whether it is marked.
    pub fn touch(file: &Path) -> bool {
        let Ok(file) = File::open(file) else {
            return false;
        };
        // In somebody else's folder it cannot be; the plan is used all the same.
        let _ = file.set_modified(SystemTime::now());
        file.metadata().is_ok_and(|it| is_marked(&it))
    }

    /// All plans, the most recently used first; not those that are damaged, which their next runs make anew.
    ///
    /// # Errors
    ///
    /// Why the folder cannot be read; a folder that is not there has no plans.
    pub fn list(&self) -> io::Result<Vec<Kept>> {
        let kept = |(path, bytes, used): (PathBuf, u64, SystemTime)| {
            let key = head(&path)?;
            let is_marked = fs::metadata(&path).is_ok_and(|it| is_marked(&it));
            Some(Kept { path, key, bytes, used, is_marked })
        };
        let files = self.files(ENDING)?;
        let mut all: Vec<Kept> = files.into_iter().filter_map(kept).collect();
        all.sort_by(|one, other| (other.used, &one.path).cmp(&(one.used, &other.path)));
        Ok(all)
    }

    /// The file of exactly this name, whatever is in it, if it has a name of our form.
    pub fn named(&self, name: &str) -> Option<PathBuf> {
        let name = format!("{name}{ENDING}");
        let path = self.0.join(&name);
        let is_file = || fs::symlink_metadata(&path).is_ok_and(|it| it.is_file());
        (is_ours(&name, ENDING) && is_file()).then_some(path)
    }

    /// Removes what is too much, least recently used first, but for this file.
    pub fn trim(&self, but: &Path) {
        self.trim_to(but, (MOST_FILES, MOST_BYTES), |path| fs::remove_file(path));
    }

    fn trim_to(&self, but: &Path, (most_files, most_bytes): (usize, u64), remove: impl Fn(&Path) -> io::Result<()>) {
        let mut files = self.files(ENDING).unwrap_or_default();
        files.sort_by_key(|(_, _, used)| *used);
        let (mut many, mut bytes) = (files.len(), files.iter().map(|it| it.1).sum::<u64>());
        for (path, length, _) in files {
            if many <= most_files && bytes <= most_bytes {
                break;
            }
            // Another process may have removed it, or have written it anew: then it is one that is made again.
            let is_gone = || remove(&path).is_ok() || !path.exists();
            if path != but && head(&path).is_some() && is_gone() {
                many -= 1;
                bytes -= length;
            }
        }
        let is_old = |used: &SystemTime| used.elapsed().is_ok_and(|it| it > LONGEST_WRITE);
        for (path, _, used) in self.files(UNFINISHED).unwrap_or_default() {
            if is_old(&used) {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Regular files whose names are of our form and end so: path, length, last use.
    fn files(&self, ending: &str) -> io::Result<Vec<(PathBuf, u64, SystemTime)>> {
        let entries = match fs::read_dir(&self.0) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut files = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let is_ours = name.to_str().is_some_and(|it| is_ours(it, ending));
            // Of the link, if it is one. It may be gone.
            let found = entry.metadata().ok().filter(|it| is_ours && it.is_file());
            if let Some(found) = found {
                let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                files.push((entry.path(), found.len(), used));
            }
        }
        Ok(files)
    }
}

/// Whether a file's name is one of ours: `NAME.plan`, or `NAME.plan.RANDOM.tmp`.
fn is_ours(name: &str, ending: &str) -> bool {
    let is_hash = |it: &str| it.len() == 16 && it.bytes().all(|it| it.is_ascii_hexdigit());
    let name = match ending {
        UNFINISHED => {
            let random = name.strip_suffix(UNFINISHED).and_then(|it| it.rsplit_once('.'));
            let Some((name, _)) = random.filter(|it| is_hash(it.1)) else {
                return false;
            };
            name
        }
        _ => name,
    };
    let name = Some(name).filter(|it| !it.contains('/'));
    let parts = name.and_then(|it| it.strip_suffix(ENDING)).map(|it| it.rsplitn(3, '-'));
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    matches!(parts[..], [hash, "pinned" | "device", _] if is_hash(hash))
}

/// The key in a file's first line.
fn head(path: &Path) -> Option<Key> {
    let mut text = Vec::new();
    let mut file = File::open(path).ok()?;
    // A key is some hundred bytes long.
    for most in [4 << 10, MOST_HEAD] {
        let more = (most - text.len()) as u64;
        file.by_ref().take(more).read_to_end(&mut text).ok()?;
        if let Some(end) = text.iter().position(|it| *it == b'\n') {
            return Key::read(std::str::from_utf8(&text[..end]).ok()?);
        }
    }
    None
}

#[cfg(test)]
mod tests;
