//! The CycloneDX bill of materials (PEP 770): the official wheel of a fork, and the crates in our library.
//!
//! No serial number and no time in it: the same inputs give the same file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use xshell::{Shell, cmd};

/// Its place in the .dist-info.
pub const NAME: &str = "sboms/pinbuddy.cdx.json";

/// A crate that is linked into the library.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crate {
    name: String,
    version: String,
    license: Option<String>,
    /// From Cargo.lock; a workspace member has none.
    sha256: Option<String>,
    depends_on: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    root: String,
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    kind: Option<String>,
}

/// The crates in the library of the checkout at `root`, from cargo.
pub fn linked_crates(root: &Path) -> Result<Vec<Crate>> {
    let shell = Shell::new()?;
    let manifest = root.join("cxx-bridge/Cargo.toml");
    let text = cmd!(shell, "cargo metadata --format-version 1 --locked --features torch --manifest-path {manifest} --filter-platform x86_64-unknown-linux-gnu")
        .quiet()
        .read()
        .context("asking cargo for the crates in the library")?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("reading Cargo.lock")?;
    collect(&serde_json::from_str(&text)?, &checksums(&lock)?)
}

fn checksums(lock: &str) -> Result<BTreeMap<(String, String), String>> {
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
    Ok(lock
        .package
        .into_iter()
        .filter_map(|it| Some(((it.name, it.version), it.checksum?)))
        .collect())
}

/// Walks from the bridge along normal dependencies. Procedural macros run at build time only.
fn collect(metadata: &Metadata, sums: &BTreeMap<(String, String), String>) -> Result<Vec<Crate>> {
    let packages: BTreeMap<&str, &Package> = metadata
        .packages
        .iter()
        .map(|it| (it.id.as_str(), it))
        .collect();
    let nodes: BTreeMap<&str, &Node> = metadata
        .resolve
        .nodes
        .iter()
        .map(|it| (it.id.as_str(), it))
        .collect();
    let (mut seen, mut queue, mut crates) = (
        BTreeSet::new(),
        vec![metadata.resolve.root.as_str()],
        Vec::new(),
    );
    while let Some(id) = queue.pop() {
        if !seen.insert(id) {
            continue;
        }
        let package = packages
            .get(id)
            .with_context(|| format!("cargo names no package {id}"))?;
        let mut depends_on = BTreeSet::new();
        for dependency in nodes.get(id).map_or(&[][..], |node| &node.deps) {
            let normal = dependency.dep_kinds.iter().any(|it| it.kind.is_none());
            let Some(other) = packages.get(dependency.pkg.as_str()).filter(|_| normal) else {
                continue;
            };
            if other
                .targets
                .iter()
                .any(|target| target.kind.iter().any(|kind| kind == "proc-macro"))
            {
                continue;
            }
            depends_on.insert(purl(&other.name, &other.version));
            queue.push(&dependency.pkg);
        }
        crates.push(Crate {
            name: package.name.clone(),
            version: package.version.clone(),
            license: package.license.clone(),
            sha256: sums
                .get(&(package.name.clone(), package.version.clone()))
                .cloned(),
            depends_on,
        });
    }
    crates.sort();
    Ok(crates)
}

fn purl(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}

/// The document of a wheel, by name and version. `base` is the official wheel that it repacks, if
/// any: name, version and hash.
pub fn document(
    wheel: (&str, &str),
    base: Option<(&str, &str, &str)>,
    crates: &[Crate],
) -> Result<Vec<u8>> {
    let (name, version) = wheel;
    let root = format!("pkg:pypi/{name}@{}", version.replace('+', "%2B"));
    let torch = base.map(|(file, version, sha256)| {
        let purl = format!("pkg:pypi/torch@{version}?file_name={file}");
        json!({
            "type": "library", "bom-ref": purl, "name": "torch", "version": version, "purl": purl,
            "description": "the official wheel, which the fork repacks",
            "hashes": [{ "alg": "SHA-256", "content": sha256 }],
        })
    });
    let torch_purl = torch.as_ref().map(|it| it["purl"].clone());
    let components: Vec<Value> = torch
        .into_iter()
        .chain(crates.iter().map(component))
        .collect();
    let bridge = crates
        .iter()
        .find(|it| it.name == "pinbuddy-bridge")
        .map(|it| Value::from(purl(&it.name, &it.version)));
    let direct: Vec<Value> = [torch_purl.clone(), bridge].into_iter().flatten().collect();
    let mut dependencies = vec![json!({ "ref": root, "dependsOn": direct })];
    dependencies.extend(torch_purl.map(|it| json!({ "ref": it, "dependsOn": [] })));
    dependencies.extend(
        crates
            .iter()
            .map(|it| json!({ "ref": purl(&it.name, &it.version), "dependsOn": it.depends_on })),
    );
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": { "type": "library", "bom-ref": root, "name": name, "version": version, "purl": root },
        },
        "components": components,
        "dependencies": dependencies,
    });
    let mut text = serde_json::to_vec_pretty(&document)?;
    text.push(b'\n');
    Ok(text)
}

fn component(it: &Crate) -> Value {
    let purl = purl(&it.name, &it.version);
    let mut component = json!({
        "type": "library", "bom-ref": purl, "name": it.name, "version": it.version, "purl": purl,
    });
    if let Some(license) = &it.license {
        // Cargo's old spelling of OR.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    if let Some(sha256) = &it.sha256 {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sha256 }]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, depends_on: &[&str]) -> Crate {
        Crate {
            name: name.into(),
            version: "0.1.0".into(),
            license: Some("MIT/Apache-2.0".into()),
            sha256: (name == "libc").then(|| "cd".repeat(32)),
            depends_on: depends_on.iter().map(|it| purl(it, "0.1.0")).collect(),
        }
    }

    #[test]
    fn a_whole_document() {
        let crates = [one("libc", &[]), one("pinbuddy-bridge", &["libc"])];
        let base = (
            "torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl",
            "2.15.0",
            &*"ab".repeat(32),
        );
        let document = document(
            ("torch", "2.15.0+cu132.pinbuddy.0.1.0"),
            Some(base),
            &crates,
        )
        .unwrap();
        insta::assert_snapshot!(String::from_utf8(document).unwrap());
    }

    #[test]
    fn only_what_is_linked() {
        let text = r#"{"packages": [
            {"id": "b", "name": "pinbuddy-bridge", "version": "1", "license": null, "targets": [{"kind": ["cdylib"]}]},
            {"id": "l", "name": "libc", "version": "1", "license": "MIT", "targets": [{"kind": ["lib"]}]},
            {"id": "m", "name": "macros", "version": "1", "license": "MIT", "targets": [{"kind": ["proc-macro"]}]},
            {"id": "c", "name": "cc", "version": "1", "license": "MIT", "targets": [{"kind": ["lib"]}]}],
          "resolve": {"root": "b", "nodes": [
            {"id": "b", "deps": [
              {"pkg": "l", "dep_kinds": [{"kind": null}]},
              {"pkg": "m", "dep_kinds": [{"kind": null}]},
              {"pkg": "c", "dep_kinds": [{"kind": "build"}]}]}]}}"#;
        let crates = collect(&serde_json::from_str(text).unwrap(), &BTreeMap::new()).unwrap();
        let names: Vec<_> = crates.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["libc", "pinbuddy-bridge"]);
    }
}
