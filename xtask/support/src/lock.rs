//! One run at a time per purpose and checkout; a second one waits.

use std::fs::{self, File};

use anyhow::{Context, Result};

use crate::paths;

/// Holds the lock `purpose` until dropped.
pub fn take(purpose: &str) -> Result<File> {
    let target = paths::target();
    fs::create_dir_all(&target).with_context(|| format!("creating {}", target.display()))?;
    let path = target.join(format!(".pinbuddy-{purpose}.lock"));
    let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    if file.try_lock().is_err() {
        eprintln!("waiting for another cargo xtask in this checkout ({purpose})");
        file.lock().with_context(|| format!("locking {}", path.display()))?;
    }
    Ok(file)
}
