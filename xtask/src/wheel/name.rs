//! A wheel's file name: its parts, its tags, and whether they fit an interpreter.

use std::fmt;

use anyhow::Result;

use crate::python::Python;
use crate::report::refusal::{Refusal, refuse};

/// `torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl`, taken apart.
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
    /// Takes `file_name` apart.
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

    /// Every single tag that the name stands for, as WHEEL lists them.
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

    /// Refuses an interpreter that pip would not install it in.
    pub fn check_fits(&self, python: &Python) -> Result<()> {
        let platform = self
            .platform
            .split('.')
            .any(|tag| platform_fits(tag, python));
        let fits = self.python.split('.').any(|tag| tag == python.python_tag())
            && self.abi.split('.').any(|tag| tag == python.abi_tag())
            && platform;
        if fits {
            Ok(())
        } else {
            Err(self.misfit(python).into())
        }
    }

    fn misfit(&self, python: &Python) -> Refusal {
        let digits = self.python.trim_start_matches("cp");
        let (major, minor) = digits.split_at(digits.len().min(1));
        refuse(format!(
            "{self} is not for the Python at {}",
            python.executable.display()
        ))
        .found(python.describe())
        .expected(format!(
            "Python {major}.{minor} with tags {}-{}-{}",
            self.python, self.abi, self.platform
        ))
        .remedy(format!(
            "--python python{major}.{minor}, or a wheel for this Python"
        ))
    }
}

impl fmt::Display for WheelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            version,
            python,
            abi,
            platform,
        } = self;
        write!(f, "{name}-{version}-{python}-{abi}-{platform}.whl")
    }
}

fn platform_fits(tag: &str, python: &Python) -> bool {
    let Some(kind) = tag.strip_suffix(&format!("_{}", python.machine)) else {
        return false;
    };
    kind == "linux" || glibc(kind).is_some_and(|floor| floor <= python.glibc())
}

/// The glibc floor that `manylinux_2_28` or one of the old names promises.
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
    use crate::python::tests::python311;

    const OFFICIAL: &str = "torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl";

    #[test]
    fn round_trip() {
        let name = WheelName::parse(OFFICIAL).unwrap();
        assert_eq!(name.to_string(), OFFICIAL);
        assert_eq!(name.tags(), ["cp311-cp311-manylinux_2_28_x86_64"]);
        name.check_fits(&python311()).unwrap();
        let both = "torch-2.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl";
        assert_eq!(WheelName::parse(both).unwrap().tags().len(), 2);
    }

    #[test]
    fn another_python() {
        let name = WheelName::parse(&OFFICIAL.replace("cp311", "cp312")).unwrap();
        insta::assert_snapshot!(name.check_fits(&python311()).unwrap_err());
        let threaded =
            WheelName::parse("torch-2.15.0-cp311-cp311t-manylinux_2_28_x86_64.whl").unwrap();
        assert!(threaded.check_fits(&python311()).is_err());
        let newer = WheelName::parse(&OFFICIAL.replace("2_28", "2_39")).unwrap();
        assert!(newer.check_fits(&python311()).is_err());
        let arm = WheelName::parse(&OFFICIAL.replace("x86_64", "aarch64")).unwrap();
        assert!(arm.check_fits(&python311()).is_err());
    }

    #[test]
    fn not_a_wheel() {
        insta::assert_snapshot!(WheelName::parse("torch.zip").unwrap_err());
    }
}
