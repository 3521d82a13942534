//! `pinbuddy.json` in the .dist-info: the inputs of this wheel. Read back to see if they changed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::platform::Floors;
use super::reader::Archive;
use xtask_support::hash::Digest;

/// Its name in the .dist-info.
pub const NAME: &str = "pinbuddy.json";

/// Everything that determines the bytes of a fork wheel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// The official wheel.
    pub base_wheel: Named,
    /// The folder below patches/.
    pub series: String,
    /// Its patches, in order.
    pub patches: Vec<Named>,
    /// Our version.
    pub pinbuddy: String,
    /// Hash of the paths and contents of all our sources in the wheel.
    pub source_sha256: String,
    /// The compilers and tools, by name.
    pub tools: BTreeMap<String, String>,
    /// The variables that the wheel sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub defaults: BTreeMap<String, String>,
    /// The addresses in METADATA that the build was given, by their labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, String>,
    /// The number that orders builds of one version, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<u32>,
}

/// A name and a hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// A file name.
    pub name: String,
    /// Of that file.
    pub sha256: String,
}

/// The whole file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Of this file's layout.
    pub format: u32,
    /// `torch.__version__` of the fork.
    pub version: String,
    /// `torch.__version__` of the base.
    pub torch_version: String,
    /// What went in.
    pub inputs: Inputs,
    /// The upstream header, before and after the series.
    pub header_sha256: (String, String),
    /// Of the compiled library.
    pub library_sha256: String,
    /// Of the program beside it, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_sha256: Option<String>,
    /// The newest symbol versions that our libraries need.
    pub floors: BTreeMap<String, String>,
}

impl Provenance {
    /// Of a fork without a program. `versions` are `torch.__version__` of the fork and of its base.
    pub fn of(
        versions: (&str, &str),
        inputs: Inputs,
        header_sha256: (String, String),
        library: &[u8],
        floors: &Floors,
    ) -> Self {
        let newest = floors.newest.iter();
        Self {
            format: 1,
            version: versions.0.to_owned(),
            torch_version: versions.1.to_owned(),
            inputs,
            header_sha256,
            library_sha256: Digest::of(library).hex(),
            program_sha256: None,
            floors: newest.map(|(set, version)| (set.clone(), version.to_string())).collect(),
        }
    }

    /// Of a fork wheel.
    pub fn read(wheel: &Path) -> Result<Self> {
        let mut archive = Archive::open(wheel)?;
        let tail = format!(".dist-info/{NAME}");
        let entry = archive.files().find(|it| it.name.ends_with(&tail));
        let name = entry.map(|it| it.name.clone());
        let name = name.with_context(|| format!("{} has no {NAME}", wheel.display()))?;
        let text = archive.text(&name)?.unwrap_or_default();
        serde_json::from_str(&text).with_context(|| format!("{name} in {}", wheel.display()))
    }
}
