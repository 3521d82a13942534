//! What linters need from PyPI, each set in a folder of its own below target/lint, kept between runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;
use xshell::Cmd;

use crate::python::pip;
use crate::support::hash::Digest;
use crate::support::paths;
use crate::support::progress::Step;

/// Where a tree pins the binaries of its linters.
const BINARIES: &str = "tools/linter/adapters/s3_init_config.json";
/// Where linters look for them.
const BINARY: &str = ".lintbin/clang-format";

/// Who gets packages.
pub struct Toolbox {
    python: PathBuf,
    /// `clang-format==17.0.6`.
    clang_format: String,
}

/// Installed packages, and the interpreter for them.
pub struct Packages {
    python: PathBuf,
    folder: Option<PathBuf>,
}

impl Toolbox {
    /// For a copy of a tree.
    pub fn new(python: &Path, tree: &Path) -> Self {
        let version = pinned(&fs::read_to_string(tree.join(BINARIES)).unwrap_or_default());
        Self {
            python: python.to_path_buf(),
            clang_format: version.map_or_else(
                || "clang-format".to_owned(),
                |version| format!("clang-format=={version}"),
            ),
        }
    }

    /// None.
    pub fn nothing(&self) -> Result<Packages> {
        Ok(Packages {
            python: self.python.clone(),
            folder: None,
        })
    }

    /// These.
    pub fn packages(&self, requirements: &[String], step: &Step) -> Result<Packages> {
        let all: Vec<&str> = requirements.iter().map(String::as_str).collect();
        let key = Digest::of(all.join("\n").as_bytes()).hex();
        let folder = paths::target().join("lint").join(&key[..16]);
        if !folder.is_dir() {
            pip::install_into(&self.python, &all, false, &folder, step)?;
        }
        Ok(Packages {
            python: self.python.clone(),
            folder: Some(folder),
        })
    }

    /// The version of clang-format that the tree pins, or the newest where it pins none by its number.
    pub fn clang_format(&self, step: &Step) -> Result<Packages> {
        self.packages(std::slice::from_ref(&self.clang_format), step)
    }

    /// What it is called.
    pub fn clang_format_name(&self) -> &str {
        &self.clang_format
    }
}

impl Packages {
    /// The interpreter.
    pub fn python(&self) -> &Path {
        &self.python
    }

    /// The command with the packages at hand.
    pub fn around<'a>(&self, command: Cmd<'a>) -> Cmd<'a> {
        let Some(folder) = &self.folder else {
            return command;
        };
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("PYTHONPATH", folder)
            .env("PATH", format!("{}:{path}", folder.join("bin").display()))
    }

    /// clang-format's own program.
    pub fn clang_format(&self) -> Result<PathBuf> {
        let folder = self.folder.as_ref().context("no packages")?;
        let program = folder.join("clang_format/data/bin/clang-format");
        anyhow::ensure!(program.is_file(), "there is no {}", program.display());
        Ok(program)
    }

    /// Puts it where the tree's linters look for it.
    pub fn link_clang_format(&self, tree: &Path) -> Result<()> {
        let link = tree.join(BINARY);
        if !link.exists() {
            fs::create_dir_all(link.parent().unwrap_or(tree))?;
            symlink(self.clang_format()?, &link)?;
        }
        Ok(())
    }
}

/// The version in the address that the tree fetches its clang-format for Linux from.
fn pinned(text: &str) -> Option<String> {
    let config: Value = serde_json::from_str(text).ok()?;
    let address = config
        .pointer("/clang-format/Linux/download_url")?
        .as_str()?;
    let is_version = |part: &&str| {
        let numbers: Vec<_> = part.split('.').collect();
        numbers.len() == 3 && numbers.iter().all(|it| it.parse::<u32>().is_ok())
    };
    address.split('/').find(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_in_the_address_if_anywhere() {
        let config = |address: &str| {
            format!(r#"{{"clang-format": {{"Linux": {{"download_url": "{address}"}}}}}}"#)
        };
        let found = pinned(&config("https://a.b.c/linux64/17.0.6/clang-format"));
        assert_eq!(found.as_deref(), Some("17.0.6"));
        assert_eq!(pinned(&config("https://a.b.c/linux64/clang-format")), None);
        assert_eq!(pinned(""), None);
    }
}
