//! The crates that are linked into our library and our program, and our own folders among them, according to cargo.

use std::collections::{BTreeMap, BTreeSet};
use std::env::consts;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::{CargoOpt, DependencyKind, Metadata, MetadataCommand, Package, Target};
use serde::Deserialize;

use crate::program::PROGRAM;
use crate::standard;
use xtask_wheel::sbom::{self, Crate};

/// The crates that a library is made of, with all that they depend on.
pub const LIBRARY: &[&str] = &["pinbuddy-bridge"];
/// The same of a wheel: of its library, and of the program beside it.
pub const WHEEL: &[&str] = &["pinbuddy-bridge", PROGRAM];

/// What is linked from `roots`, crates of the checkout at `root`; Rust's standard library among it.
pub fn crates(root: &Path, roots: &[&str]) -> Result<Vec<Crate>> {
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("reading Cargo.lock")?;
    let sums = checksums(&lock)?;
    let standard = standard::component(root)?;
    let crates = linked(root, roots)?.into_iter();
    let crates = crates.map(|(package, mut depends_on)| {
        let (name, version) = (package.name.to_string(), package.version.to_string());
        if roots.contains(&name.as_str()) {
            depends_on.insert(sbom::purl(&standard.name, &standard.version));
        }
        Crate {
            license: package.license,
            sha256: sums.get(&(name.clone(), version.clone())).cloned(),
            name,
            version,
            depends_on,
        }
    });
    let mut crates: Vec<_> = crates.collect();
    crates.push(standard);
    crates.sort();
    Ok(crates)
}

/// The crates of others in the library and in the program beside it: name and version, and the folder of its source.
pub fn foreign_sources(root: &Path) -> Result<Vec<(String, PathBuf)>> {
    let linked = linked(root, WHEEL)?.into_iter().map(|(it, _)| it);
    let foreign = linked.filter(|it| it.source.is_some());
    let named = |it: Package| {
        let name = format!("{}-{}", it.name, it.version);
        Ok((name, folder(&it)?.to_path_buf()))
    };
    foreign.map(named).collect()
}

fn folder(package: &Package) -> Result<&Path> {
    let folder = package.manifest_path.parent();
    Ok(folder.context("a manifest has a folder")?.as_std_path())
}

/// The folders of our own crates among them, relative to `root`.
pub fn folders(root: &Path, roots: &[&str]) -> Result<Vec<String>> {
    let mut folders = Vec::new();
    for (package, _) in linked(root, roots)? {
        if package.source.is_some() {
            continue;
        }
        let inside = folder(&package)?.strip_prefix(root);
        let inside = inside.with_context(|| format!("{} is outside of {}", package.name, root.display()))?;
        folders.push(inside.display().to_string());
    }
    folders.sort();
    Ok(folders)
}

fn ask(root: &Path) -> Result<Metadata> {
    let target = format!("{}-unknown-linux-gnu", consts::ARCH);
    let platform = ["--locked".to_owned(), format!("--filter-platform={target}")];
    MetadataCommand::new()
        .manifest_path(root.join("cxx-bridge/Cargo.toml"))
        .features(CargoOpt::SomeFeatures(vec!["torch".to_owned()]))
        .other_options(platform)
        .exec()
        .context("asking cargo for the crates in the library")
}

type Checksums = BTreeMap<(String, String), String>;

fn checksums(lock: &str) -> Result<Checksums> {
    #[derive(Deserialize)]
    struct Lock {
        package: Vec<Locked>,
    }
    #[derive(Deserialize)]
    struct Locked {
        name: String,
        version: String,
        checksum: Option<String>,
    }
    let lock: Lock = toml::from_str(lock).context("in Cargo.lock")?;
    let listed = lock.package.into_iter();
    Ok(listed.filter_map(|it| Some(((it.name, it.version), it.checksum?))).collect())
}

/// The packages that are linked from `roots`, each with the URLs of its dependencies: follows normal dependencies, and skips
/// procedural macros, which run at build time only.
fn linked(root: &Path, roots: &[&str]) -> Result<Vec<(Package, BTreeSet<String>)>> {
    let metadata = ask(root)?;
    let resolve = metadata.resolve.as_ref();
    let resolve = resolve.context("cargo resolved nothing")?;
    let is_root = |it: &&Package| it.source.is_none() && roots.contains(&it.name.as_str());
    let named = metadata.packages.iter().filter(is_root);
    let mut queue: Vec<_> = named.map(|it| &it.id).collect();
    anyhow::ensure!(queue.len() == roots.len(), "cargo knows not all of {roots:?}");
    let (mut seen, mut linked) = (BTreeSet::new(), Vec::new());
    while let Some(id) = queue.pop() {
        if !seen.insert(id) {
            continue;
        }
        let mut depends_on = BTreeSet::new();
        for dependency in &resolve[id].deps {
            let mut kinds = dependency.dep_kinds.iter();
            let other = &metadata[&dependency.pkg];
            let is_macro = other.targets.iter().any(Target::is_proc_macro);
            if kinds.any(|it| it.kind == DependencyKind::Normal) && !is_macro {
                depends_on.insert(sbom::purl(&other.name, &other.version.to_string()));
                queue.push(&dependency.pkg);
            }
        }
        linked.push((metadata[id].clone(), depends_on));
    }
    Ok(linked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask_support::paths;

    #[test]
    fn only_what_is_linked() {
        let crates = crates(paths::root(), LIBRARY).unwrap();
        let found = |name: &str| crates.iter().find(|it| it.name == name);
        assert!(found("pinbuddy-core").is_some_and(|it| it.sha256.is_none()));
        assert!(found("libc").is_some_and(|it| it.sha256.is_some()));
        let standard = found(sbom::STANDARD_LIBRARY).unwrap();
        let url = sbom::purl(&standard.name, &standard.version);
        assert!(found("pinbuddy-bridge").unwrap().depends_on.contains(&url), "{url}");
        // A procedural macro, a build dependency and a test dependency.
        for other in ["cxxbridge-macro", "serde_derive", "cc", "insta"] {
            assert!(found(other).is_none(), "{other}");
        }
    }

    #[test]
    fn folders_are_those_of_the_crates_and_of_what_they_need() {
        let of = |roots: &[&str]| folders(paths::root(), roots).unwrap();
        let has = |all: &[String], folder| all.iter().any(|it| it.starts_with(folder));
        let (library, wheel) = (of(LIBRARY), of(WHEEL));
        for (folder, in_library, in_wheel) in [
            ("cxx-bridge", true, true),
            ("cxx-bridge/machine", true, true),
            ("tools", false, true),
            ("xtask", false, false),
        ] {
            let found = (has(&library, folder), has(&wheel, folder));
            assert_eq!(found, (in_library, in_wheel), "{folder}");
        }
        let all = of(&["xtask-wheel"]);
        assert!(has(&all, "xtask/support"), "wheels need it");
    }
}
