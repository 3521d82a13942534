//! The fork's tests once more, with a library that asserts what must hold: no driver call under a
//! lock (invariant I5), and whatever else a debug build checks.
//!
//! The library runs in an environment of its own, the fork's with that one file replaced, so that
//! programs which a test starts find it too, and those that it starts with stock's Python do not.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::fork;
use crate::build_wheel::compile::LIBRARY;
use crate::build_wheel::debug;
use crate::cli;
use crate::python::Python;
use crate::report::tally::Tally;
use crate::runtime::Runtime;
use crate::support::links;
use crate::support::scratch::Scratch;

/// Tests of what the Python package says, which no assertion of the library's bears on.
const PACKAGE: [&str; 3] = ["command", "package", "summary"];

/// pytest with the debug build, except what measures time and [`PACKAGE`]. A test fails where the library that was
/// loaded is another.
pub fn python_tests(
    args: &cli::BuildWheel,
    fork: &Path,
    stock: &Path,
    python: &Path,
) -> Result<Tally> {
    let library = debug::library(args)?;
    fork::require(fork, stock, python)?;
    let (major, minor, _) = Python::probe(python)?.version;
    let site = format!("lib/python{major}.{minor}/site-packages");
    let environment = environment(fork, Path::new(&site), &library)?;
    let runtime = Runtime::choose(false, python)?;
    fork::untimed(&environment, stock, &runtime, |command| {
        command
            .env("PINBUDDY_EXPECT_DEBUG", "1")
            .args(PACKAGE.map(|it| format!("--ignore=test_{it}.py")));
    })
}

/// A copy of the environment `fork` beside it that takes no room: torch by hard links, all else by
/// symbolic ones, and `library` in place of torch's own.
fn environment(fork: &Path, site: &Path, library: &Path) -> Result<PathBuf> {
    let name = fork.file_name().unwrap_or_default().to_string_lossy();
    let folder = fork.with_file_name(format!("{name}-debug"));
    let scratch = Scratch::folder(&folder)?;
    let copy = scratch.path();
    for part in ["bin", "lib64", "pyvenv.cfg"] {
        if fs::symlink_metadata(fork.join(part)).is_ok() {
            links::tree(&fork.join(part), &copy.join(part))?;
        }
    }
    fs::create_dir_all(copy.join(site))?;
    let packages = fork.join(site);
    for entry in
        fs::read_dir(&packages).with_context(|| format!("listing {}", packages.display()))?
    {
        let entry = entry?;
        let target = copy.join(site).join(entry.file_name());
        if entry.file_name() == "torch" {
            links::tree(&entry.path(), &target)?;
        } else {
            symlink(entry.path(), &target)
                .with_context(|| format!("linking {}", target.display()))?;
        }
    }
    // Removed before it is written: written through its hard link, it would be the fork's, too.
    let ours = copy.join(site).join("torch/lib").join(LIBRARY);
    fs::remove_file(&ours).with_context(|| format!("{} has no {LIBRARY}", fork.display()))?;
    fs::copy(library, &ours).with_context(|| format!("copying {}", library.display()))?;
    scratch.publish(&folder)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_is_another_and_the_fork_keeps_its_own() {
        let root = tempfile::tempdir().unwrap();
        let (fork, site) = (root.path().join("fork"), Path::new("lib/python3/site"));
        let library = root.path().join("debug.so");
        let packages = fork.join(site);
        fs::create_dir_all(packages.join("torch/lib")).unwrap();
        fs::create_dir_all(packages.join("nvidia")).unwrap();
        fs::create_dir_all(fork.join("bin")).unwrap();
        symlink("/usr/bin/python3", fork.join("bin/python")).unwrap();
        fs::write(fork.join("pyvenv.cfg"), "home = /usr/bin\n").unwrap();
        fs::write(packages.join("torch/lib").join(LIBRARY), "fork").unwrap();
        fs::write(packages.join("nvidia/file"), "shared").unwrap();
        // Twice, as over an environment that an earlier run left.
        for text in ["debug", "newer"] {
            fs::write(&library, text).unwrap();
            let made = environment(&fork, site, &library).unwrap();
            assert_eq!(made, root.path().join("fork-debug"));
            let read = |path: PathBuf| fs::read_to_string(path).unwrap();
            let ours = Path::new("torch/lib").join(LIBRARY);
            assert_eq!(read(made.join(site).join(&ours)), text);
            assert_eq!(read(packages.join(&ours)), "fork");
            assert_eq!(read(made.join(site).join("nvidia/file")), "shared");
            assert_eq!(read(made.join("pyvenv.cfg")), "home = /usr/bin\n");
            let python = fs::read_link(made.join("bin/python")).unwrap();
            assert_eq!(python, Path::new("/usr/bin/python3"));
        }
    }
}
