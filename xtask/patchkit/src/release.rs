//! `patches/versions.toml`: the supported releases, their headers before and after our series, and CUDA's headers.

mod asked;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use xtask_support::refusal::refuse;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versions {
    /// The header that the series change, as upstream's tree names it.
    pub header: String,
    /// The supported releases, in any order.
    #[serde(rename = "release")]
    pub releases: Vec<Release>,
    /// Releases of which only the sources can be forked, not the wheels: see the file.
    #[serde(rename = "source_release", default)]
    pub source_releases: Vec<Release>,
    /// The folder of the series that a pull request has on top of a release's series (`ci/upstream_pr.py`).
    #[serde(default)]
    pub pull_request: Option<String>,
    /// The headers to compile against, by CUDA version.
    pub cuda: BTreeMap<String, Cuda>,
}

/// One supported release.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The version in `torch==VERSION`.
    pub version: String,
    /// The Pythons that have an official wheel: `3.14`, or `3.14t` without the global lock.
    #[serde(default)]
    pub pythons: Vec<String>,
    /// Upstream's header as the official wheel ships it.
    pub header_sha256: String,
    /// The same header after the series.
    pub patched_sha256: String,
    /// The folder of the series below `patches/`.
    pub series: String,
    /// The folders of the series that a source build needs besides, in this order; none where nobody tried.
    #[serde(default)]
    pub source_series: Vec<String>,
}

/// Where the CUDA headers for one CUDA version come from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cuda {
    /// The include folders, relative to where the packages are installed. The first one has `cuda_runtime_api.h`, and
    /// CUDA's libraries lie beside it.
    pub include: Vec<String>,
    /// Requirements, as pip takes them.
    pub packages: Vec<String>,
}

impl Versions {
    /// Reads the file in the checkout at `root`.
    pub fn read(root: &Path) -> Result<Self> {
        let path = root.join("patches/versions.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("in {}", path.display()))
    }

    /// Reads the text of such a file.
    pub fn parse(text: &str) -> Result<Self> {
        let versions: Self = toml::from_str(text)?;
        anyhow::ensure!(!versions.releases.is_empty(), "no [[release]] at all");
        for release in versions.with_sources() {
            anyhow::ensure!(
                release.header_sha256.len() == 64,
                "release {}: header_sha256 is not a SHA-256",
                release.version
            );
        }
        Ok(versions)
    }

    /// All releases, also those that can only be built from source.
    pub fn with_sources(&self) -> impl Iterator<Item = &Release> {
        self.releases.iter().chain(&self.source_releases)
    }

    /// All releases with fork wheels, the newest last.
    pub fn sorted(&self) -> Vec<&Release> {
        let mut known: Vec<&Release> = self.releases.iter().collect();
        known.sort_by_key(|release| numbers(&release.version));
        known
    }

    /// The versions of those, for a message.
    pub fn listed(&self) -> String {
        let known = self.sorted().into_iter().map(|it| it.version.as_str());
        known.collect::<Vec<_>>().join(", ")
    }

    /// The newest CUDA that a wheel is for, such as `13.2`.
    pub fn newest_cuda(&self) -> String {
        let newest = self.cuda.keys().max_by_key(|it| numbers(it));
        newest.cloned().unwrap_or_default()
    }

    /// The CUDA headers for the CUDA version of torch/version.py.
    pub fn cuda(&self, version: &str) -> Result<&Cuda> {
        self.cuda.get(version).ok_or_else(|| {
            let known: Vec<_> = self.cuda.keys().map(String::as_str).collect();
            refuse(format!("this wheel is for CUDA {version}, whose headers patches/versions.toml does not name"))
                .found(format!("CUDA {version}"))
                .expected(format!("one of {}", known.join(", ")))
                .remedy(format!("add [cuda.\"{version}\"] with its packages to patches/versions.toml"))
                .into()
        })
    }
}

/// `2.15.0` as numbers, so that 2.15 comes after 2.9.
pub fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_cuda_versions_list_the_known() {
        let versions = Versions::read(xtask_support::paths::root()).unwrap();
        let said = versions.cuda("11.8").unwrap_err().to_string();
        let known = versions.cuda.into_keys().collect::<Vec<_>>().join(", ");
        assert!(said.contains(&format!("expected  one of {known}\n")), "{said}");
    }

    #[test]
    fn a_typo_is_an_error() {
        assert!(Versions::parse("header = \"x\"\nhaeder = \"y\"\nrelease = []\n[cuda]\n").is_err());
    }

    #[test]
    fn scripts_know_the_same_releases() {
        let root = xtask_support::paths::root();
        let output = std::process::Command::new(root.join("ci/releases.sh")).output();
        let listed = String::from_utf8(output.unwrap().stdout).unwrap();
        let versions = Versions::read(root).unwrap();
        assert_eq!(listed.trim_end().replace('\n', ", "), versions.listed());
        for release in &versions.releases {
            assert!(!release.pythons.is_empty(), "{}", release.version);
        }
    }
}
