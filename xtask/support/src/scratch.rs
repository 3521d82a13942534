//! Temporary files and folders that are removed after an error, after Ctrl-C, and by the next run.
//!
//! Invariant: any other path is complete, because it got its name by one rename.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};

const PREFIX: &str = ".pinbuddy-";
static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static COUNT: AtomicU32 = AtomicU32::new(0);
static UNDISTURBED: Mutex<()> = Mutex::new(());

/// Removes every live scratch path when the user or the system asks us to stop.
pub fn clean_up_when_interrupted() -> Result<()> {
    ctrlc::set_handler(|| {
        let _whole = UNDISTURBED.lock().unwrap_or_else(PoisonError::into_inner);
        // Keeps the lock for ever, so that no new scratch path appears before the exit.
        let live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
        stop_children();
        // Twice, since another thread may still be writing below a folder.
        for path in live.iter().chain(live.iter()) {
            remove(path);
        }
        eprintln!("\ninterrupted: nothing half-made was left behind");
        std::process::exit(130);
    })
    .context("installing the handler for Ctrl-C")
}

/// Runs a short operation that must not be interrupted; a signal is handled after it.
pub fn undisturbed<T>(run: impl FnOnce() -> T) -> T {
    let _whole = UNDISTURBED.lock().unwrap_or_else(PoisonError::into_inner);
    run()
}

/// A terminal's Ctrl-C reaches our children too; a signal sent to us alone does not.
fn stop_children() {
    let list = format!("/proc/self/task/{}/children", std::process::id());
    let Ok(children) = fs::read_to_string(list) else {
        return;
    };
    for child in children.split_whitespace() {
        let _ = Command::new("kill").arg(child).status();
    }
}

/// A path with a temporary name, removed when dropped unless it was published.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A folder beside `destination`, on the same file system, so that publishing is one rename.
    pub fn folder(destination: &Path) -> Result<Self> {
        let scratch = Self::reserve(destination)?;
        fs::create_dir(&scratch.path)
            .with_context(|| format!("creating {}", scratch.path.display()))?;
        Ok(scratch)
    }

    /// A name for a file beside `destination`; the file itself is the caller's to create.
    pub fn file(destination: &Path) -> Result<Self> {
        Self::reserve(destination)
    }

    fn reserve(destination: &Path) -> Result<Self> {
        let parent = destination
            .parent()
            .filter(|it| !it.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        fs::create_dir_all(parent)
            .with_context(|| format!("creating the folder {}", parent.display()))?;
        sweep(parent);
        let name = destination
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{count}-{name}", std::process::id()));
        LIVE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(path.clone());
        Ok(Self { path })
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
                let old = Self::reserve(destination)?;
                fs::rename(destination, &old.path)
                    .with_context(|| format!("replacing {}", destination.display()))?;
            }
        } else {
            let file = File::open(&self.path)
                .with_context(|| format!("opening {}", self.path.display()))?;
            file.sync_all()
                .with_context(|| format!("flushing {} to disk", self.path.display()))?;
        }
        fs::rename(&self.path, destination).with_context(|| {
            format!(
                "renaming {} to {}",
                self.path.display(),
                destination.display()
            )
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
        LIVE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|path| *path != self.path);
    }
}

fn remove(path: &Path) {
    let _ = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
}

/// Removes what a run that was killed outright has left in `folder`.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|it| {
            it.strip_prefix(PREFIX)?
                .split('-')
                .next()?
                .parse::<u32>()
                .ok()
        });
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            remove(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
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
        let names: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|it| it.unwrap().file_name())
            .collect();
        assert_eq!(names, ["kept"]);
    }

    #[test]
    fn what_a_killed_run_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        // Above the largest process number that Linux gives out.
        fs::create_dir(folder.path().join(".pinbuddy-4194999-0-wheel")).unwrap();
        let scratch = Scratch::file(&folder.path().join("wheel")).unwrap();
        fs::write(scratch.path(), "text").unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }
}
