//! A copy of a virtual environment that takes no space: its packages are links. Packages added to the copy do not
//! appear in the original.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Python;
use xtask_support::links;
use xtask_support::scratch::Scratch;

/// Recreates `folder` as a copy of `environment`. The packages in the folder `more`, as `pip --target` leaves them,
/// are added, and replace packages of the same names.
pub fn copy(
    environment: &Path,
    folder: &Path,
    python: &Python,
    more: Option<&Path>,
) -> Result<PathBuf> {
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
    let mut replaced = BTreeSet::new();
    if let Some(more) = more {
        for name in names(more)?.into_iter().filter(|it| it != "bin") {
            replaced.insert(package(&name));
            link(&more.join(&name), &to.join(&name))?;
        }
    }
    let from = environment.join(&site);
    for name in names(&from)? {
        if !replaced.contains(&package(&name)) {
            link(&from.join(&name), &to.join(&name))?;
        }
    }
    scratch.publish(folder)?;
    Ok(folder.to_path_buf())
}

/// `numpy` for both `numpy` and `numpy-2.4.6.dist-info`, which belong together.
fn package(name: &OsString) -> String {
    let name = name.to_string_lossy();
    let described = name.strip_suffix(".dist-info");
    let described = described.and_then(|it| Some(it.rsplit_once('-')?.0));
    described.unwrap_or(&name).to_lowercase()
}

fn names(folder: &Path) -> Result<Vec<OsString>> {
    let entries = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.file_name())).collect()
}

fn link(from: &Path, to: &Path) -> Result<()> {
    symlink(from, to).with_context(|| format!("linking {}", to.display()))
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
            let made = copy(&stock, &folder, &python311(), None).unwrap();
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

    #[test]
    fn pinned_packages_take_the_place_of_others() {
        let root = tempfile::tempdir().unwrap();
        let stock = environment(root.path());
        let more = root.path().join("packages");
        for (folder, version) in [(stock.join(SITE), "1.0"), (more.clone(), "2.0")] {
            fs::create_dir_all(folder.join(format!("numpy-{version}.dist-info"))).unwrap();
            fs::create_dir_all(folder.join("numpy")).unwrap();
            fs::write(folder.join("numpy/version"), version).unwrap();
        }
        fs::create_dir(more.join("bin")).unwrap();
        let made = copy(&stock, &root.path().join("copy"), &python311(), Some(&more)).unwrap();
        let mut found = names(&made.join(SITE)).unwrap();
        found.sort_unstable();
        assert_eq!(found, ["numpy", "numpy-2.0.dist-info", "torch"]);
        let version = fs::read_to_string(made.join(SITE).join("numpy/version")).unwrap();
        assert_eq!(version, "2.0");
    }
}
