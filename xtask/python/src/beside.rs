//! A copy of a virtual environment that takes no space: its packages are links. Packages added to the copy do not
//! appear in the original.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Python;
use xtask_support::links;
use xtask_support::scratch::Scratch;

/// Recreates `folder` as a copy of `environment`.
pub fn copy(environment: &Path, folder: &Path, python: &Python) -> Result<PathBuf> {
    let (major, minor, _) = python.version;
    let site = PathBuf::from(format!("lib/python{major}.{minor}/site-packages"));
    let scratch = Scratch::folder(folder)?;
    let copy = scratch.path();
    for part in ["bin", "lib64", "pyvenv.cfg"] {
        if fs::symlink_metadata(environment.join(part)).is_ok() {
            links::tree(&environment.join(part), &copy.join(part))?;
        }
    }
    let to = copy.join(&site);
    fs::create_dir_all(&to)?;
    let from = environment.join(&site);
    for name in names(&from)? {
        symlink(from.join(&name), to.join(&name))
            .with_context(|| format!("linking {}", to.display()))?;
    }
    scratch.publish(folder)?;
    Ok(folder.to_path_buf())
}

fn names(folder: &Path) -> Result<Vec<OsString>> {
    let entries = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.file_name())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python311;

    const SITE: &str = "lib/python3.11/site-packages";

    fn environment(root: &Path) -> PathBuf {
        let stock = root.join("2-stock-cp3");
        fs::create_dir_all(stock.join(SITE).join("torch/lib")).unwrap();
        fs::create_dir_all(stock.join("bin")).unwrap();
        symlink("/usr/bin/python3", stock.join("bin/python")).unwrap();
        fs::write(stock.join("pyvenv.cfg"), "home = /usr/bin\n").unwrap();
        fs::write(stock.join(SITE).join("torch/file"), "official").unwrap();
        stock
    }

    #[test]
    fn what_is_added_to_the_copy_is_not_in_the_environment() {
        let root = tempfile::tempdir().unwrap();
        let stock = environment(root.path());
        let folder = root.path().join("2-plugin-cp3");
        // Twice: the second time over the environment of an earlier run.
        for _ in 0..2 {
            let made = copy(&stock, &folder, &python311()).unwrap();
            let read = |path: PathBuf| fs::read_to_string(path).unwrap();
            assert_eq!(read(made.join(SITE).join("torch/file")), "official");
            assert_eq!(read(made.join("pyvenv.cfg")), "home = /usr/bin\n");
            let python = fs::read_link(made.join("bin/python")).unwrap();
            assert_eq!(python, Path::new("/usr/bin/python3"));
            assert!(!made.join(SITE).join("pinbuddy").exists());
            fs::create_dir(made.join(SITE).join("pinbuddy")).unwrap();
            assert!(!stock.join(SITE).join("pinbuddy").exists());
        }
    }
}
