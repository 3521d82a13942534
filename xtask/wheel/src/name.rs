//! Parses a wheel's file name.

use std::fmt;

use anyhow::Result;

use xtask_support::refusal::refuse;

/// The parts of `torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WheelName {
    /// `torch`.
    pub name: String,
    /// `2.15.0`, or with a local part.
    pub version: String,
    /// Python tags, separated by dots where there are several.
    pub python: String,
    /// ABI tags.
    pub abi: String,
    /// Platform tags.
    pub platform: String,
}

impl WheelName {
    /// Parses `file_name`.
    pub fn parse(file_name: &str) -> Result<Self> {
        let stem = file_name.strip_suffix(".whl");
        let parts: Vec<&str> = stem.unwrap_or_default().split('-').collect();
        let (name, version, tags) = match parts[..] {
            [name, version, ref tags @ ..] if tags.len() == 3 => (name, version, tags),
            [name, version, _build, ref tags @ ..] if tags.len() == 3 => (name, version, tags),
            _ => {
                return Err(refuse(format!("{file_name} is not the name of a wheel"))
                    .expected("NAME-VERSION-PYTHON-ABI-PLATFORM.whl, as the package index names it")
                    .remedy("give the file its original name back")
                    .into());
            }
        };
        Ok(Self {
            name: name.to_owned(),
            version: version.to_owned(),
            python: tags[0].to_owned(),
            abi: tags[1].to_owned(),
            platform: tags[2].to_owned(),
        })
    }

    /// `2.15.0` of `2.15.0+cu132`.
    pub fn public_version(&self) -> &str {
        self.version.split('+').next().unwrap_or_default()
    }

    /// Every tag that the name expands to, as WHEEL lists them.
    pub fn tags(&self) -> Vec<String> {
        let mut tags = Vec::new();
        for python in self.python.split('.') {
            for abi in self.abi.split('.') {
                for platform in self.platform.split('.') {
                    tags.push(format!("{python}-{abi}-{platform}"));
                }
            }
        }
        tags
    }
}

impl fmt::Display for WheelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (python, abi, platform) = (&self.python, &self.abi, &self.platform);
        let (name, version) = (&self.name, &self.version);
        write!(f, "{name}-{version}-{python}-{abi}-{platform}.whl")
    }
}

/// The minimum glibc version of `manylinux_2_28` or one of the old names.
pub fn glibc(kind: &str) -> Option<(u32, u32)> {
    match kind {
        "manylinux1" => Some((2, 5)),
        "manylinux2010" => Some((2, 12)),
        "manylinux2014" => Some((2, 17)),
        _ => {
            let (major, minor) = kind.strip_prefix("manylinux_")?.split_once('_')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFICIAL: &str = "torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl";

    #[test]
    fn a_name_is_read_and_written_alike_and_another_file_is_no_wheel() {
        let name = WheelName::parse(OFFICIAL).unwrap();
        assert_eq!(name.to_string(), OFFICIAL);
        assert_eq!(name.tags(), ["cp311-cp311-manylinux_2_28_x86_64"]);
        let both = "torch-2.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl";
        assert_eq!(WheelName::parse(both).unwrap().tags().len(), 2);
        insta::assert_snapshot!("not_a_wheel", WheelName::parse("torch.zip").unwrap_err());
    }
}
