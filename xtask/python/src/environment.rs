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
    /// Opens the environment in `folder`. `made_by` is the command that makes such an environment.
    pub fn open(folder: &Path, made_by: &str) -> Result<Self> {
        let python = folder.join("bin/python");
        if !python.exists() {
            return Err(
                refuse(format!("{} is not a virtual environment", folder.display()))
                    .expected(format!("{}", python.display()))
                    .remedy(format!("{made_by} makes one and prints its path"))
                    .into(),
            );
        }
        let lib = folder.join("lib");
        let torch = fs::read_dir(&lib)
            .with_context(|| format!("listing {}", lib.display()))?
            .flatten()
            .map(|python| python.path().join("site-packages/torch"))
            .find(|torch| torch.is_dir());
        let Some(torch) = torch else {
            return Err(refuse(format!("there is no torch in {}", folder.display()))
                .remedy(format!(
                    "{made_by} makes one that has it, and prints its path"
                ))
                .into());
        };
        Ok(Self {
            folder: std::path::absolute(folder)?,
            torch: std::path::absolute(torch)?,
        })
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
        let open = || Environment::open(folder.path(), "cargo xtask venv");
        let refused = || open().unwrap_err().to_string();
        assert!(refused().contains("is not a virtual environment"));
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
