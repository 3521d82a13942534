//! Our sources as one folder of a PyTorch tree, for `--kind full`.
//!
//! The crates of the library, with their licence, in a workspace of their own: no build tool, no tests that cross layers.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use tempfile::TempDir;
use toml::{Table, Value};
use xshell::{Shell, cmd};

use crate::build_wheel::library;
use crate::support::refusal::refuse;
use xtask_patchkit::git;

/// Where in PyTorch's tree.
const FOLDER: &str = "third_party/pinbuddy";
/// Files that are copied as they are.
const FILES: [&str; 3] = ["Cargo.lock", "LICENSE", "NOTICE"];
const MANIFEST: &str = "Cargo.toml";
/// A folder with our files where a PyTorch tree has them, and subject and body of the commit that adds them.
pub fn gather(root: &Path) -> Result<(TempDir, String, String)> {
    let folder = tempfile::tempdir().context("making a folder for our sources")?;
    let into = folder.path().join(FOLDER);
    let crates = library::folders(root, library::LIBRARY)?;
    let shell = Shell::new()?;
    let listed = git::at(&shell, root)
        .args(["ls-files", "-z", "--"])
        .args(&crates)
        .args(FILES);
    let listed = git::text(listed)?;
    for name in listed.split('\0').filter(|it| !it.is_empty()) {
        let to = into.join(name);
        fs::create_dir_all(to.parent().unwrap_or(&into))?;
        fs::copy(root.join(name), to).with_context(|| format!("copying {name}"))?;
    }
    let path = root.join(MANIFEST);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let manifest = workspace(&text, &crates).with_context(|| format!("in {}", path.display()))?;
    fs::write(into.join(MANIFEST), manifest)?;
    prune(&into, &crates)?;
    let body = format!(
        "The engine that decides which pinned memory serves which request, in Rust, and the host\n\
         allocator that asks it, in C++, with their licence, as a cargo workspace of its own. A build\n\
         with USE_PINBUDDY=1 and PINBUDDY_ROOT={FOLDER}, as an absolute path, has it."
    );
    Ok((
        folder,
        format!("Add pinbuddy {}", env!("CARGO_PKG_VERSION")),
        body,
    ))
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
        let (root, ..) = gather(paths::root()).unwrap();
        let folder = root.path().join(FOLDER);
        for file in [
            "LICENSE",
            "NOTICE",
            "cxx-bridge/cpp/buddy_allocator.cpp",
            "rust-core/engine/src/lib.rs",
        ] {
            assert!(folder.join(file).is_file(), "{file}");
        }
        assert!(!folder.join("xtask").exists());
        let lock = fs::read_to_string(folder.join("Cargo.lock")).unwrap();
        assert!(lock.contains("\"cxx\"") && !lock.contains("\"xshell\""));
        let shell = Shell::new().unwrap();
        shell.change_dir(folder);
        let cargo = std::env::var_os("CARGO").unwrap();
        // `cargo metadata` would want the packages of every platform, and a build fetches this one's only.
        let tree = cmd!(shell, "{cargo} tree --locked --offline --workspace");
        assert!(tree.quiet().ignore_stdout().run().is_ok());
    }
}
