//! A bare repository with the objects of a checkout and nothing else of it. git in it hears none of the checkout's
//! configuration, so that no setting has to be known to be overridden.
//!
//! Invariant: the checkout is only read.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;
use xshell::{Cmd, Shell, cmd};

use super::git;

/// The repository, which is gone when this is dropped.
#[derive(Debug)]
pub struct Aside {
    folder: TempDir,
    shell: Shell,
}

impl Aside {
    /// For a checkout. New objects land in the repository, and not in the checkout.
    pub fn of(checkout: &Path) -> Result<Self> {
        let folder = tempfile::tempdir().context("making a folder for a repository")?;
        let shell = Shell::new()?;
        let it = Self { folder, shell };
        git::output(it.git().args(["init", "--quiet", "--bare", "--template="]))?;
        let objects = it.path(checkout, "objects")?;
        let alternates = format!("{}\n", objects.display());
        fs::write(it.folder.path().join("objects/info/alternates"), alternates)?;
        // Where the history of a shallow clone ends.
        let shallow = it.path(checkout, "shallow")?;
        if shallow.exists() {
            fs::copy(shallow, it.folder.path().join("shallow"))?;
        }
        Ok(it)
    }

    fn path(&self, checkout: &Path, name: &str) -> Result<PathBuf> {
        let shell = &self.shell;
        let path = cmd!(
            shell,
            "git -C {checkout} rev-parse --path-format=absolute --git-path {name}"
        );
        Ok(git::text(git::neutral(path))?.trim_end().into())
    }

    /// git in the repository.
    pub fn git(&self) -> Cmd<'_> {
        git::neutral(cmd!(self.shell, "git")).env("GIT_DIR", self.folder.path())
    }

    /// What git prints.
    pub fn text(&self, arguments: &[&str]) -> Result<String> {
        git::text(self.git().args(arguments))
    }
}
