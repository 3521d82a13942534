//! Environments for clients: stock, fork and plug-in, each with the libraries of `tests/clients/requirements.txt`.
//! They consist of links; the libraries are installed once for all.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::differences::Kind;
use crate::build_plugin;
use crate::build_wheel::compile::Flavour;
use crate::cli;
use crate::python::environment::Environment;
use crate::python::{Python, beside, pip, tools};
use crate::support::hash::Digest;
use crate::support::progress::Progress;
use crate::support::{disk, lock, paths};
use crate::venv;

/// Disk space of the libraries, twice while pip unpacks them.
const ROOM: u64 = 1 << 30;

/// The environment with the official wheel, and those compared with it.
#[derive(Debug)]
pub struct Environments {
    pub stock: Environment,
    pub others: Vec<(Kind, Environment)>,
}

impl Environments {
    /// Makes the missing environments: minutes the first time, seconds later.
    pub fn ensure(args: &cli::TestClients) -> Result<Self> {
        let (python, torch) = (args.python.as_path(), args.torch.as_deref());
        let fork = venv::ensure(torch, false, python)?;
        let stock = venv::ensure(torch, true, python)?;
        let plugin = build_plugin::build(&plugin(args), Flavour::Wheel)?;
        let _lock = lock::take("clients")?;
        let with = Libraries::ensure(python)?;
        let others = vec![
            (Kind::Fork, with.beside(&fork, "fork")?),
            (Kind::PlugIn, with.beside(&stock, "plugin")?),
        ];
        let wheel = plugin.path.display().to_string();
        venv::require(&others[1].1, &args.python, &["--no-deps", &wheel])?;
        let stock = with.beside(&stock, "stock")?;
        Ok(Self { stock, others })
    }

    /// Makes those with stock and with the fork; with the libraries only if they are needed.
    pub fn ensure_two(python: &Path, libraries: bool) -> Result<Self> {
        let fork = venv::ensure(None, false, python)?;
        let stock = venv::ensure(None, true, python)?;
        if !libraries {
            return Ok(Self::of(&stock, &fork));
        }
        let _lock = lock::take("clients")?;
        let with = Libraries::ensure(python)?;
        let fork = with.beside(&fork, "fork")?;
        Ok(Self::of(&with.beside(&stock, "stock")?, &fork))
    }

    /// Uses two existing environments, for clients that need only torch.
    pub fn of(stock: &Environment, fork: &Environment) -> Self {
        Self {
            stock: stock.clone(),
            others: vec![(Kind::Fork, fork.clone())],
        }
    }

    /// The release, from the folder's name.
    pub fn torch(&self) -> String {
        release(&self.stock)
    }

    /// What is compared with stock.
    pub fn kinds(&self) -> Vec<Kind> {
        self.others.iter().map(|(kind, _)| *kind).collect()
    }
}

/// `2.15.0` of `2.15.0-stock-cp311`.
fn release(environment: &Path) -> String {
    let name = environment.file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    name.split('-').next().unwrap_or_default().to_owned()
}

fn plugin(args: &cli::TestClients) -> cli::BuildPlugin {
    cli::BuildPlugin {
        torch: args.torch.clone().into_iter().collect(),
        all: false,
        wheel: Vec::new(),
        python: args.python.clone(),
        out: paths::root().join("dist"),
        json: false,
    }
}

/// `2.15.0-clients-fork-cp311` of `2.15.0-fork-cp311`.
fn beside_it(environment: &Path, kind: &str) -> PathBuf {
    let name = environment
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let parts: Vec<&str> = name.split('-').collect();
    let (first, last) = (parts.first(), parts.last());
    let name = [first, last].map(|it| it.copied().unwrap_or_default());
    environment.with_file_name(format!("{}-clients-{kind}-{}", name[0], name[1]))
}

/// The libraries, installed once for all.
#[derive(Debug)]
struct Libraries {
    python: Python,
    /// Named after the digest of their list. Complete if it exists.
    folder: PathBuf,
}

impl Libraries {
    fn ensure(python: &Path) -> Result<Self> {
        let python = Python::probe(python)?;
        let list = paths::root().join("tests/clients/requirements.txt");
        let digest = Digest::of_file(&list)?.hex();
        let name = format!("clients-{}-{}", &digest[..12], python.abi_tag());
        let folder = paths::target().join("venv").join(&name);
        if !folder.is_dir() {
            install(&list, &folder, &python)?;
        }
        Ok(Self { python, folder })
    }

    /// A copy of an environment that has them.
    fn beside(&self, environment: &Path, kind: &str) -> Result<Environment> {
        let folder = beside_it(environment, kind);
        beside::copy(environment, &folder, &self.python, Some(&self.folder))?;
        Environment::open(&folder, "cargo xtask test-clients")
    }
}

fn install(list: &Path, folder: &Path, python: &Python) -> Result<()> {
    forget_others(folder, python)?;
    disk::require(folder, ROOM, "install the clients' libraries")?;
    let tools = tools::ensure(python)?;
    let list = list.display().to_string();
    Progress::new(1).step("install the clients' libraries", |step| {
        // Without dependencies: all are in the list, except torch, which the environment has.
        pip::install_into(&tools.python, &["--requirement", &list], true, folder, step)
    })?;
    Ok(())
}

/// Removes the libraries of earlier lists.
fn forget_others(folder: &Path, python: &Python) -> Result<()> {
    let parent = folder.parent().context("the libraries are in no folder")?;
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("clients-") && name.ends_with(&format!("-{}", python.abi_tag())) {
            let path = entry.path();
            fs::remove_dir_all(&path).with_context(|| format!("removing {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_lie_beside_the_two_that_there_are() {
        let made = beside_it(Path::new("target/venv/2.15.0-fork-cp311"), "fork");
        assert_eq!(made, Path::new("target/venv/2.15.0-clients-fork-cp311"));
        let made = beside_it(Path::new("target/venv/2.15.0-stock-cp311"), "plugin");
        assert_eq!(made, Path::new("target/venv/2.15.0-clients-plugin-cp311"));
        assert_eq!(release(&made), "2.15.0");
    }
}
