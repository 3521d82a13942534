//! Temporary files and folders that are removed after an error, after Ctrl-C, and by the next run.
//!
//! Invariants: any other path is complete, because it got its name by one rename. No name can be foretold, and each is
//! made by us or not at all: nobody can have put a link there for us to write through. Whoever has one locks it: that is known
//! across containers, in which the numbers of processes are not.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

const PREFIX: &str = ".pinbuddy-";
/// So often another run may take a new path for one that was left behind, since it is not locked yet.
const TRIES: usize = 3;
static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes every live scratch path when the user or the system asks us to stop.
pub fn clean_up_when_interrupted() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("installing the handler for Ctrl-C")?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            clean_up(signal);
        }
    });
    Ok(())
}

fn clean_up(signal: i32) -> ! {
    // Keeps the lock for ever, so that no new scratch path appears before the exit.
    let live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
    stop_children();
    // Twice, since another thread may still be writing below a folder.
    for path in live.iter().chain(live.iter()) {
        remove(path);
    }
    eprintln!("\ninterrupted: nothing half-made was left behind");
    std::process::exit(128 + signal);
}

/// A terminal's Ctrl-C reaches our children too, of whichever thread; a signal sent to us alone does not.
fn stop_children() {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    for thread in threads.flatten() {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace() {
            let _ = Command::new("kill").arg(child).status();
        }
    }
}

/// A path with a temporary name, removed when dropped unless it was published.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Locked until it is dropped, where the file system has locks.
    _lock: Option<File>,
}

impl Scratch {
    /// A folder beside `destination`, on the same file system, so that publishing is one rename.
    pub fn folder(destination: &Path) -> Result<Self> {
        Self::make(destination, |path| fs::create_dir(path))
    }

    /// An empty file beside `destination`.
    pub fn file(destination: &Path) -> Result<Self> {
        Self::make(destination, |path| File::create_new(path).map(drop))
    }

    fn make(destination: &Path, mut make: impl FnMut(&Path) -> io::Result<()>) -> Result<Self> {
        let parent = destination.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent).with_context(|| format!("creating the folder {}", parent.display()))?;
        sweep(parent);
        let name = destination.file_name().unwrap_or_default().to_string_lossy();
        // Held meanwhile, so that a path is known to the handler of Ctrl-C as soon as it is there.
        let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut named = || {
            tempfile::Builder::new()
                .prefix(&format!("{PREFIX}{}-", std::process::id()))
                .suffix(&format!("-{name}"))
                .rand_bytes(12)
                .make_in(parent, &mut make)
                .and_then(|made| Ok(made.into_temp_path().keep()?))
                .with_context(|| format!("creating something in {}", parent.display()))
        };
        let mut path = named()?;
        let mut locked = lock(&path);
        for _ in 1..TRIES {
            if path.exists() && !matches!(locked, Err(TryLockError::WouldBlock)) {
                break;
            }
            path = named()?;
            locked = lock(&path);
        }
        let _lock = locked.ok();
        live.push(path.clone());
        Ok(Self { path, _lock })
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves it to its real name, in one step.
    pub fn publish(self, destination: &Path) -> Result<()> {
        if self.path.is_dir() {
            // A rename replaces a file, but not a folder with something in it.
            if destination.exists() {
                let old = Self::make(destination, |_| Ok(()))?;
                fs::rename(destination, &old.path).with_context(|| format!("replacing {}", destination.display()))?;
            }
        } else {
            let file = File::open(&self.path).with_context(|| format!("opening {}", self.path.display()))?;
            file.sync_all().with_context(|| format!("flushing {} to disk", self.path.display()))?;
        }
        fs::rename(&self.path, destination)
            .with_context(|| format!("renaming {} to {}", self.path.display(), destination.display()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
        LIVE.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.path);
    }
}

/// Replaces a file in one step, unless it has these bytes.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    let scratch = Scratch::file(path)?;
    fs::write(scratch.path(), bytes).with_context(|| format!("writing {}", path.display()))?;
    scratch.publish(path)
}

fn remove(path: &Path) {
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

/// Removes what a run that was killed outright has left in `folder`.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_scratch = name.to_str().is_some_and(|it| it.starts_with(PREFIX));
        // Not through a link, which would be somebody else's. A path that cannot be locked stays.
        if is_scratch
            && !path.is_symlink()
            && let Ok(_lock) = lock(&path)
        {
            remove(&path);
        }
    }
}

/// The lock of a path that nobody has locked.
fn lock(path: &Path) -> Result<File, TryLockError> {
    let file = File::open(path).map_err(TryLockError::Error)?;
    file.try_lock()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn nothing_remains_unless_published() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, lost) = (folder.path().join("kept"), folder.path().join("lost"));
        for (destination, publish) in [(&kept, true), (&lost, false)] {
            let scratch = Scratch::folder(destination).unwrap();
            fs::write(scratch.path().join("file"), "text").unwrap();
            if publish {
                scratch.publish(destination).unwrap();
            }
        }
        let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names, ["kept"]);
    }

    /// As another process, in a container or not, makes it: the number is above the largest that Linux gives out.
    fn of_another(folder: &Path, name: &str) -> File {
        let path = folder.join(format!("{PREFIX}4194999-{name}-wheel"));
        fs::create_dir(&path).unwrap();
        File::open(path).unwrap()
    }

    #[test]
    fn what_a_killed_run_left_is_swept_and_not_what_another_container_has_in_hand() {
        let folder = tempfile::tempdir().unwrap();
        drop(of_another(folder.path(), "killed"));
        let at_work = of_another(folder.path(), "working");
        at_work.lock().unwrap();
        let destination = folder.path().join("wheel");
        let own = Scratch::folder(&destination).unwrap();
        let second = Scratch::file(&destination).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
        drop((own, second));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn what_is_swept_before_it_is_locked_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut made = 0;
        let scratch = Scratch::make(&folder.path().join("wheel"), |path| {
            made += 1;
            fs::create_dir(path)?;
            if made == 1 { fs::remove_dir(path) } else { Ok(()) }
        });
        assert!(scratch.unwrap().path().exists() && made == 2);
    }

    #[test]
    fn no_name_comes_again_and_what_is_there_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let destination = folder.path().join("wheel");
        let mut names = BTreeSet::new();
        for make in [Scratch::file, Scratch::folder, Scratch::file] {
            let scratch = make(&destination).unwrap();
            let name = scratch.path().file_name().unwrap().to_str().unwrap();
            let own = format!("{PREFIX}{}-", std::process::id());
            let random = name.strip_prefix(&own).unwrap();
            assert_eq!(random.strip_suffix("-wheel").unwrap().len(), 12);
            assert!(names.insert(random.to_owned()), "{random} again");
        }
        // Whatever is at the first name that is tried stays as it is, a link too.
        let (victim, mut taken) = (folder.path().join("victim"), None);
        fs::write(&victim, "text").unwrap();
        let scratch = Scratch::make(&destination, |path| {
            if taken.is_none() {
                std::os::unix::fs::symlink(&victim, path)?;
                taken = Some(path.to_owned());
            }
            File::create_new(path).map(drop)
        });
        let scratch = scratch.unwrap();
        assert_ne!(Some(scratch.path()), taken.as_deref());
        fs::write(scratch.path(), "ours").unwrap();
        assert_eq!(fs::read_to_string(victim).unwrap(), "text");
    }
}
