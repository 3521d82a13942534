//! The CycloneDX bill of materials (PEP 770): the official wheel of a fork, and the crates in our library.
//!
//! Without serial number and time, so that the same inputs give the same file.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Its place in the .dist-info.
pub const NAME: &str = "sboms/pinbuddy.cdx.json";

/// Our crates that a wheel has as files: the library and the program.
const ROOTS: [&str; 2] = ["pinbuddy-bridge", "pinbuddy-tools"];

/// A crate that is linked into the library or the program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crate {
    /// As Cargo.toml has it.
    pub name: String,
    /// Its version.
    pub version: String,
    /// As Cargo.toml has it.
    pub license: Option<String>,
    /// Its checksum in Cargo.lock; workspace members have none.
    pub sha256: Option<String>,
    /// Package URLs of its dependencies.
    pub depends_on: BTreeSet<String>,
}

/// Rust's standard library among the crates.
pub const STANDARD_LIBRARY: &str = "rust-std";

/// The package URL of a crate. The standard library comes with the toolchain, and from no registry.
pub fn purl(name: &str, version: &str) -> String {
    let kind = match name {
        STANDARD_LIBRARY => "generic",
        _ => "cargo",
    };
    format!("pkg:{kind}/{name}@{version}")
}

/// The document for a wheel. `base` is the official wheel that it repacks, if any: name, version and hash. `defaults` are
/// the variables that it sets.
pub fn document(
    wheel: (&str, &str),
    base: Option<(&str, &str, &str)>,
    crates: &[Crate],
    defaults: &BTreeMap<String, String>,
) -> Value {
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
    let components: Vec<Value> = torch.into_iter().chain(crates.iter().map(component)).collect();
    let roots =
        crates.iter().filter(|it| ROOTS.contains(&it.name.as_str())).map(|it| Value::from(purl(&it.name, &it.version)));
    let direct: Vec<Value> = torch_purl.clone().into_iter().chain(roots).collect();
    let mut dependencies = vec![json!({ "ref": root, "dependsOn": direct })];
    dependencies.extend(torch_purl.map(|it| json!({ "ref": it, "dependsOn": [] })));
    dependencies
        .extend(crates.iter().map(|it| json!({ "ref": purl(&it.name, &it.version), "dependsOn": it.depends_on })));
    let mut about = json!({ "type": "library", "bom-ref": root, "name": name, "version": version, "purl": root });
    if !defaults.is_empty() {
        let one = |(name, value)| json!({ "name": format!("pinbuddy:default:{name}"), "value": value });
        about["properties"] = defaults.iter().map(one).collect();
    }
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": about },
        "components": components,
        "dependencies": dependencies,
    })
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
    use crate::writer::NewFile;

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
    fn the_standard_library_is_in_no_registry() {
        assert_eq!(purl("libc", "0.2.1"), "pkg:cargo/libc@0.2.1");
        let purl = purl(STANDARD_LIBRARY, "1.90.0");
        assert_eq!(purl, "pkg:generic/rust-std@1.90.0");
    }

    #[test]
    fn a_whole_document() {
        let crates = [one("libc", &[]), one("pinbuddy-bridge", &["libc"])];
        let base = ("torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl", "2.15.0", &*"ab".repeat(32));
        let document = document(
            ("torch", "2.15.0+cu132.pinbuddy.0.1.0"),
            Some(base),
            &crates,
            &BTreeMap::from([("BUDDY_LOG".to_owned(), "info".to_owned())]),
        );
        let text = NewFile::json(&document).unwrap().bytes;
        insta::assert_snapshot!(String::from_utf8(text).unwrap());
    }
}
