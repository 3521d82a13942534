//! Our sources as one folder of a PyTorch tree, for `--kind full`.
//!
//! The crates of the library, with their licence, in a workspace of their own: no build tool, no tests that cross layers.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use tempfile::TempDir;
use toml::{Table, Value};
use xshell::{Shell, cmd};

use super::message::Message;
use super::proposal::{Change, Step};
use crate::build_wheel::library;
use crate::support::refusal::refuse;
use xtask_patchkit::lint::names;

/// Where in PyTorch's tree.
pub const FOLDER: &str = "third_party/pinbuddy";
/// Files that are copied as they are.
const FILES: [&str; 3] = ["Cargo.lock", "LICENSE", "NOTICE"];
const MANIFEST: &str = "Cargo.toml";
/// Files and folders that tools leave behind.
const LITTER: [&str; 3] = ["__pycache__", "target", "corpus"];

/// Files of ours, ready to be added.
#[derive(Debug)]
pub struct Vendored {
    /// The root of a tree with these files and no others.
    pub root: TempDir,
    /// Relative to [`FOLDER`] below the root.
    pub files: Vec<String>,
}

/// The commit that adds them.
pub fn step(root: &Path) -> Result<Step> {
    let vendored = gather(root)?;
    let version = env!("CARGO_PKG_VERSION");
    Ok(Step {
        message: Message {
            subject: format!("Add pinbuddy {version}"),
            body: format!(
                "The engine that decides which pinned memory serves which request, in Rust, and the host\n\
                 allocator that asks it, in C++, with their licence, as a cargo workspace of its own. A build\n\
                 with USE_PINBUDDY=1 and PINBUDDY_ROOT={FOLDER}, as an absolute path, has it."
            ),
        },
        files: vendored
            .files
            .iter()
            .map(|it| format!("{FOLDER}/{it}"))
            .collect(),
        change: Change::Add(vendored),
    })
}

fn gather(root: &Path) -> Result<Vendored> {
    let folder = tempfile::tempdir().context("making a folder for our sources")?;
    let into = folder.path().join(FOLDER);
    fs::create_dir_all(&into)?;
    let mut files = Vec::new();
    let crates = library::folders_of_the_library(root)?;
    for name in crates.iter().map(String::as_str).chain(FILES) {
        copy(root, &into, name, &mut files)?;
    }
    let path = root.join(MANIFEST);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let manifest = workspace(&text, &crates).with_context(|| format!("in {}", path.display()))?;
    fs::write(into.join(MANIFEST), manifest)?;
    files.push(MANIFEST.to_owned());
    prune(&into, &crates)?;
    // A crate may lie in another's folder.
    files.sort();
    files.dedup();
    Ok(Vendored {
        root: folder,
        files,
    })
}

fn copy(from: &Path, to: &Path, relative: &str, files: &mut Vec<String>) -> Result<()> {
    let (source, target) = (from.join(relative), to.join(relative));
    if source.is_dir() {
        fs::create_dir_all(&target)?;
        for name in names(&source)? {
            if !LITTER.contains(&name.as_str()) && !name.starts_with('.') {
                copy(from, to, &format!("{relative}/{name}"), files)?;
            }
        }
        return Ok(());
    }
    fs::copy(&source, &target).with_context(|| format!("copying {}", source.display()))?;
    files.push(relative.to_owned());
    Ok(())
}

/// The workspace's manifest with these crates only.
fn workspace(text: &str, crates: &[String]) -> Result<String> {
    let mut manifest: Table = toml::from_str(text)?;
    let members: Vec<Value> = crates.iter().map(|it| it.as_str().into()).collect();
    let workspace = manifest.get_mut("workspace").and_then(Value::as_table_mut);
    let workspace = workspace.context("no [workspace]")?;
    workspace.insert("members".into(), members.into());
    workspace.remove("default-members");
    if let Some(Value::Table(all)) = workspace.get_mut("dependencies") {
        all.retain(|_, it| {
            let path = it.get("path").and_then(Value::as_str);
            path.is_none_or(|path| crates.iter().any(|it| it == path))
        });
    }
    // Its settings are for programs that are not here.
    if let Some(Value::Table(dev)) = manifest.get_mut("profile").and_then(|it| it.get_mut("dev")) {
        dev.remove("package");
    }
    Ok(toml::to_string_pretty(&manifest)?)
}

/// Removes from Cargo.lock what only other crates need, so that `--locked` works. Needs no network.
fn prune(folder: &Path, crates: &[String]) -> Result<()> {
    let shell = Shell::new()?;
    shell.change_dir(folder);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = cmd!(shell, "{cargo} update --workspace --offline --quiet")
        .quiet()
        .ignore_status()
        .output()
        .context("running cargo")?;
    if output.status.success() {
        return Ok(());
    }
    Err(refuse("our sources are no cargo workspace of their own")
        .found(String::from_utf8_lossy(&output.stderr).trim())
        .expected(format!(
            "{} with what Cargo.toml and Cargo.lock name",
            crates.join(", ")
        ))
        .remedy("cargo fetch --locked, in the checkout of pinbuddy")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::paths;

    /// Needs what cargo has fetched to build this test, and no network.
    #[test]
    fn what_is_vendored_is_a_workspace_with_its_lock() {
        let vendored = gather(paths::root()).unwrap();
        for file in [
            "Cargo.lock",
            "Cargo.toml",
            "LICENSE",
            "NOTICE",
            "cxx-bridge/cpp/buddy_allocator.cpp",
            "rust-core/engine/src/lib.rs",
        ] {
            assert!(vendored.files.iter().any(|it| it == file), "{file}");
        }
        assert!(!vendored.files.iter().any(|it| it.contains("xtask")));
        let folder = vendored.root.path().join(FOLDER);
        let lock = fs::read_to_string(folder.join("Cargo.lock")).unwrap();
        assert!(lock.contains("\"cxx\"") && !lock.contains("\"plotters\""));
        let shell = Shell::new().unwrap();
        shell.change_dir(folder);
        let cargo = std::env::var_os("CARGO").unwrap();
        // `cargo metadata` would want the packages of every platform, and a build fetches this one's only.
        let tree = cmd!(shell, "{cargo} tree --locked --offline --workspace");
        assert!(tree.quiet().ignore_stdout().run().is_ok());
    }
}
