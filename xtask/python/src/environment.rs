//! A virtual environment with torch, which runs every program that uses torch.
//!
//! Invariant: its folder has an interpreter and the package torch. Checked by looking at files, not by running
//! Python.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use xtask_support::refusal::refuse;

/// The environment; dereferences to its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    folder: PathBuf,
    torch: PathBuf,
}

impl Environment {
    /// Opens the environment in `folder`.
    pub fn open(folder: &Path) -> Result<Self> {
        let lacks = |what: &str| {
            refuse(format!("there is {what} in {}", folder.display()))
                .remedy("cargo xtask venv, or with --stock, makes one with torch and prints its path")
        };
        if !folder.join("bin/python").exists() {
            return Err(lacks("no virtual environment").into());
        }
        let lib = folder.join("lib");
        let torch = fs::read_dir(&lib)
            .with_context(|| format!("listing {}", lib.display()))?
            .flatten()
            .map(|python| python.path().join("site-packages/torch"))
            .find(|torch| torch.is_dir());
        let torch = torch.ok_or_else(|| lacks("no torch"))?;
        Ok(Self { folder: std::path::absolute(folder)?, torch: std::path::absolute(torch)? })
    }

    /// Its interpreter.
    pub fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    /// The package's folder.
    pub fn torch(&self) -> &Path {
        &self.torch
    }
}

impl Deref for Environment {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.folder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_with_an_interpreter_and_torch_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Environment::open(folder.path());
        let refused = || open().unwrap_err().to_string();
        assert!(refused().contains("there is no virtual environment in"));
        fs::create_dir_all(folder.path().join("bin")).unwrap();
        fs::write(folder.path().join("bin/python"), "").unwrap();
        let site = folder.path().join("lib/python3.11/site-packages");
        fs::create_dir_all(&site).unwrap();
        assert!(refused().contains("there is no torch in"));
        fs::create_dir_all(site.join("torch")).unwrap();
        let environment = open().unwrap();
        assert_eq!(environment.torch(), site.join("torch"));
        assert_eq!(environment.join("bin/python"), environment.python());
    }
}
