//! Finds the oldest system that a library runs on, from its symbol versions, and the matching platform tag.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::FileHeader as _;
use serde::Serialize;

use super::name;
use xtask_support::refusal::refuse;

/// The newest version of each symbol set that a library needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Floors {
    /// By set: GLIBC, GLIBCXX, CXXABI, GCC.
    #[serde(flatten)]
    pub newest: BTreeMap<String, Version>,
}

/// Dotted numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(Vec<u32>);

/// Maximum versions for each manylinux policy on x86-64: glibc's minor, GLIBCXX 3.4.N, CXXABI 1.3.N, GCC N. From
/// PEP 600 and the policies of pypa/auditwheel (data, 2026).
const POLICIES: [(u32, u32, u32, u32); 15] = [
    (5, 8, 1, 4),
    (12, 13, 3, 4),
    (17, 19, 7, 4),
    (24, 22, 10, 4),
    (26, 22, 10, 4),
    (27, 24, 11, 7),
    (28, 24, 11, 7),
    (31, 28, 12, 7),
    (34, 29, 13, 7),
    (35, 30, 13, 12),
    (36, 30, 13, 12),
    (38, 30, 13, 12),
    (39, 33, 15, 14),
    (40, 33, 15, 14),
    (41, 33, 15, 14),
];

impl Floors {
    /// Of a shared library.
    pub fn read(path: &Path) -> Result<Self> {
        let data = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        Self::of(&data)
            .with_context(|| format!("reading the symbol versions of {}", path.display()))
    }

    /// Of a shared library's bytes.
    pub fn of(data: &[u8]) -> Result<Self> {
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, data)?;
        let mut floors = Self::default();
        let Some((mut needs, link)) = sections.gnu_verneed(endian, data)? else {
            return Ok(floors);
        };
        let strings = sections.strings(endian, data, link)?;
        while let Some((_need, mut versions)) = needs.next()? {
            while let Some(version) = versions.next()? {
                floors.add(std::str::from_utf8(version.name(endian, strings)?)?)?;
            }
        }
        Ok(floors)
    }

    /// Adds one version such as `GLIBC_2.34`. Symbol sets of other libraries are ignored.
    fn add(&mut self, need: &str) -> Result<()> {
        // Packed relative relocations, which glibc reads from 2.36 on.
        let need = if need == "GLIBC_ABI_DT_RELR" {
            "GLIBC_2.36"
        } else {
            need
        };
        let Some((set, number)) = need.split_once('_') else {
            return Ok(());
        };
        if !matches!(set, "GLIBC" | "GLIBCXX" | "CXXABI" | "GCC") {
            return Ok(());
        }
        let Some(version) = Version::parse(number) else {
            if matches!(number, "FLOAT128" | "TM_1") {
                return Ok(());
            }
            bail!("it needs {need}, which no platform tag promises");
        };
        let newest = self.newest.entry(set.to_owned()).or_default();
        *newest = version.max(newest.clone());
        Ok(())
    }

    /// The needs of both libraries together.
    pub fn merge(mut self, other: &Self) -> Self {
        for (set, version) in &other.newest {
            let newest = self.newest.entry(set.clone()).or_default();
            *newest = version.max(newest).clone();
        }
        self
    }

    /// The glibc minor version of the oldest policy that allows these needs.
    fn policy(&self) -> Option<u32> {
        POLICIES
            .iter()
            .find(|(glibc, glibcxx, cxxabi, gcc)| {
                self.fits("GLIBC", &[2, *glibc])
                    && self.fits("GLIBCXX", &[3, 4, *glibcxx])
                    && self.fits("CXXABI", &[1, 3, *cxxabi])
                    && self.fits("GCC", &[*gcc, u32::MAX])
            })
            .map(|policy| policy.0)
    }

    fn fits(&self, set: &str, most: &[u32]) -> bool {
        self.newest
            .get(set)
            .is_none_or(|version| version.0.as_slice() <= most)
    }

    /// The platform tag of the fork wheel: the base wheel's, or a newer one if our library needs it.
    pub fn platform_tag(&self, base: &str) -> Result<String> {
        let first = base.split('.').next().unwrap_or(base);
        let Some(arch) = first.strip_suffix("_x86_64") else {
            bail!("the platform tag {base} is not for x86_64")
        };
        // A wheel with a plain `linux` tag keeps it.
        if arch == "linux" {
            return Ok(base.to_owned());
        }
        let (major, minor) =
            name::glibc(arch).with_context(|| format!("an unknown platform tag: {base}"))?;
        ensure!(major == 2, "an unknown platform tag: {base}");
        let Some(ours) = self.policy() else {
            return Err(
                refuse("no manylinux tag is true for the library that was compiled")
                    .found(self.to_string())
                    .expected("what manylinux_2_41 allows, or less")
                    .remedy("build on an older system, such as Debian 12 or a manylinux container")
                    .into(),
            );
        };
        Ok(if ours <= minor {
            base.to_owned()
        } else {
            format!("manylinux_2_{ours}_x86_64")
        })
    }
}

impl fmt::Display for Floors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self
            .newest
            .iter()
            .map(|(set, version)| format!("{set} {version}"))
            .collect();
        f.write_str(&all.join(", "))
    }
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        text.split('.')
            .map(|part| part.parse().ok())
            .collect::<Option<_>>()
            .map(Self)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&parts.join("."))
    }
}

impl Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A shared library's NEEDED entries and its SONAME.
pub fn needed(data: &[u8]) -> Result<(Vec<String>, Option<String>)> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    let table = sections.dynamic_table(endian, data)?;
    let (mut names, mut own) = (Vec::new(), None);
    for entry in table.iter() {
        if entry.tag == object::elf::DT_NEEDED {
            names.push(String::from_utf8_lossy(table.string(entry)?).into_owned());
        } else if entry.tag == object::elf::DT_SONAME {
            own = Some(String::from_utf8_lossy(table.string(entry)?).into_owned());
        }
    }
    Ok((names, own))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "manylinux_2_28_x86_64";

    fn tag(needs: &[&str], base: &str) -> Result<String> {
        let mut floors = Floors::default();
        for need in needs {
            floors.add(need)?;
        }
        floors.platform_tag(base)
    }

    #[test]
    fn never_less_than_the_base_and_never_less_than_true() {
        for (needs, expected) in [
            (&["GLIBC_2.17", "GLIBCXX_3.4.21"][..], BASE),
            (&["GLIBC_2.14", "GLIBC_2.34"], "manylinux_2_34_x86_64"),
            (&["GLIBC_2.17", "GLIBCXX_3.4.29"], "manylinux_2_34_x86_64"),
            (&["GLIBC_2.17", "GLIBCXX_3.4.30"], "manylinux_2_35_x86_64"),
            (&["CXXABI_1.3.15"], "manylinux_2_39_x86_64"),
            (&["GCC_12.0.0"], "manylinux_2_35_x86_64"),
            (&["GLIBC_ABI_DT_RELR"], "manylinux_2_36_x86_64"),
            (&["GLIBC_2.37"], "manylinux_2_38_x86_64"),
            (&["libcudart.so.13", "ZLIB_1.2.9", "GCC_3.0"], BASE),
        ] {
            assert_eq!(tag(needs, BASE).unwrap(), expected, "{needs:?}");
        }
        assert_eq!(
            tag(&["GLIBC_2.34"], "linux_x86_64").unwrap(),
            "linux_x86_64"
        );
        let old = "manylinux_2_17_x86_64.manylinux2014_x86_64";
        assert_eq!(tag(&["GLIBC_2.28"], old).unwrap(), BASE);
        assert_eq!(tag(&["GLIBC_2.2.5"], old).unwrap(), old);
    }

    #[test]
    fn what_no_tag_promises() {
        insta::assert_snapshot!(tag(&["GLIBC_2.99", "GLIBCXX_3.4.40"], BASE).unwrap_err());
        assert!(tag(&["GLIBC_PRIVATE"], BASE).is_err());
    }
}
