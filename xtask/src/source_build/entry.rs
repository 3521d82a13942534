//! How a release builds its own wheel, according to its pyproject.toml.
//!
//! `setup.py bdist_wheel` for setuptools' legacy backend, and the standard front end (`python -m build`) for any
//! other. Both in our own environment, so that an interrupted build finds the same CMake and ninja again.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::support::refusal::refuse;
use xtask_patchkit::tree::Tree;

const PROJECT: &str = "pyproject.toml";
const LEGACY: &str = "setuptools.build_meta:__legacy__";
/// Releases with the legacy backend set no upper bounds, but their oldest third-party projects do not configure
/// with CMake 4.
const OF_THEIR_TIME: [(&str, &str); 2] = [("cmake", "cmake<4"), ("setuptools", "setuptools<82")];

/// The build entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Requirements of the environment, in pip's form.
    pub packages: Vec<String>,
    front: Front,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Front {
    SetupPy,
    Standard,
}

#[derive(Deserialize)]
struct Project {
    #[serde(rename = "build-system")]
    build_system: BuildSystem,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct BuildSystem {
    requires: Vec<String>,
    build_backend: Option<String>,
}

impl Entry {
    /// Reads it from a tree.
    pub fn of(tree: &Tree) -> Result<Self> {
        let Some(text) = tree.read(PROJECT)? else {
            return Err(refuse(format!("{} has no {PROJECT}", tree.root.display()))
                .expected("what PyTorch's own build needs, in [build-system]")
                .remedy("pass the root of a clone of pytorch, at a release's tag")
                .into());
        };
        let text = String::from_utf8_lossy(&text);
        Self::parse(&text).with_context(|| format!("reading {}/{PROJECT}", tree.root.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let BuildSystem {
            requires: mut packages,
            build_backend,
        } = toml::from_str::<Project>(text)?.build_system;
        let front = if build_backend.as_deref() == Some(LEGACY) {
            for package in &mut packages {
                let bounded = OF_THEIR_TIME.iter().find(|(name, _)| package == name);
                if let Some((_, bounded)) = bounded {
                    (*bounded).clone_into(package);
                }
            }
            Front::SetupPy
        } else {
            packages.push("build".to_owned());
            Front::Standard
        };
        Ok(Self { packages, front })
    }

    /// The command that writes a wheel to `out`, run in the tree's root.
    pub fn command(&self, python: &Path, out: &Path) -> Vec<String> {
        let (python, out) = (python.display().to_string(), out.display().to_string());
        let arguments: &[&str] = match self.front {
            Front::SetupPy => &["setup.py", "bdist_wheel", "--dist-dir"],
            Front::Standard => &[
                "-m",
                "build",
                "--wheel",
                "--no-isolation",
                "--skip-dependency-check",
                "--outdir",
            ],
        };
        let middle = arguments.iter().map(ToString::to_string);
        [python].into_iter().chain(middle).chain([out]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_release_has_its_own() {
        let legacy = "[build-system]\nrequires = [\"setuptools\", \"cmake\", \"ninja\"]\n\
                      build-backend = \"setuptools.build_meta:__legacy__\"\n";
        let entry = Entry::parse(legacy).unwrap();
        assert_eq!(entry.packages, ["setuptools<82", "cmake<4", "ninja"]);
        let command = entry.command(Path::new("/v/bin/python"), Path::new("/out"));
        assert_eq!(
            command.join(" "),
            "/v/bin/python setup.py bdist_wheel --dist-dir /out"
        );
        let newer = "[build-system]\nrequires = [\"scikit-build-core>=1.0\"]\n\
                     build-backend = \"scikit_build_core.build\"\n";
        let entry = Entry::parse(newer).unwrap();
        assert_eq!(entry.packages, ["scikit-build-core>=1.0", "build"]);
        let command = entry.command(Path::new("python"), Path::new("/out"));
        assert!(
            command
                .join(" ")
                .starts_with("python -m build --wheel --no-isolation")
        );
        assert!(Entry::parse("[project]\n").is_err());
    }
}
