//! Reads the symbol versions of libraries: which they need, which they offer, and whether a platform tag is true for them.

use std::collections::BTreeMap;
use std::env::consts;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use object::Endianness;
use object::elf::{FileHeader64, SHN_ABS, SHN_UNDEF};
use object::read::elf::{FileHeader as _, SectionTable};
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
pub struct Version(pub Vec<u32>);

impl Floors {
    /// Of a shared library.
    pub fn read(path: &Path) -> Result<Self> {
        let data = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        Self::of(&data).with_context(|| format!("reading the symbol versions of {}", path.display()))
    }

    /// Of a shared library's bytes.
    pub fn of(data: &[u8]) -> Result<Self> {
        let (endian, sections) = sections(data)?;
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
        let need = if need == "GLIBC_ABI_DT_RELR" { "GLIBC_2.36" } else { need };
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

    /// Refuses `what` with these needs if a system that the platform tag names may lack one of them. glibc's version stands
    /// in the tag; of the other sets a system has what torch's own libraries need, and of libgcc's what Rust's unwinder
    /// does, as every manylinux policy says.
    pub fn require(&self, what: &str, tag: &str, torch: &Self) -> Result<()> {
        let first = tag.split('.').next().unwrap_or(tag);
        let kind = first.strip_suffix(&format!("_{}", consts::ARCH));
        let kind = kind.with_context(|| format!("the platform tag {tag} is not for {}", consts::ARCH))?;
        // A wheel with a plain `linux` tag promises nothing.
        if kind == "linux" {
            return Ok(());
        }
        let (major, minor) = name::glibc(kind).with_context(|| format!("an unknown platform tag: {tag}"))?;
        let (glibc, rust) = (Version(vec![major, minor]), Version(vec![4, 2, 0]));
        let most = |set: &str| match set {
            "GLIBC" => Some(&glibc),
            "GCC" => torch.newest.get(set).max(Some(&rust)),
            _ => torch.newest.get(set),
        };
        let newer = |(set, version): (&String, &Version)| {
            let (most, found) = (most(set), format!("{set} {version}"));
            match most {
                Some(most) if most >= version => None,
                Some(most) => Some(format!("{found} (not {most} or less)")),
                None => Some(format!("{found} (torch needs none)")),
            }
        };
        let newer: Vec<_> = self.newest.iter().filter_map(newer).collect();
        if newer.is_empty() {
            return Ok(());
        }
        Err(refuse(format!("{what} needs a newer system than {tag}"))
            .found(newer.join(", "))
            .expected("symbol versions of the tag's glibc, and of libstdc++ those that torch's own libraries need")
            .remedy("put an older g++ first on the PATH, such as that of Debian 12")
            .into())
    }
}

impl fmt::Display for Floors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self.newest.iter().map(|(set, version)| format!("{set} {version}")).collect();
        f.write_str(&all.join(", "))
    }
}

impl Version {
    /// `2.28`.
    pub fn parse(text: &str) -> Option<Self> {
        text.split('.').map(|part| part.parse().ok()).collect::<Option<_>>().map(Self)
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

type Sections<'data> = SectionTable<'data, FileHeader64<Endianness>>;

/// The sections of a library.
fn sections(data: &[u8]) -> Result<(Endianness, Sections<'_>)> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    Ok((endian, header.sections(endian, data)?))
}

/// A symbol that a library offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// `GLIBC_2.34`; one name may have several.
    pub version: String,
    /// Its size, if it is data.
    pub data: Option<u64>,
}

/// The symbols with versions that a shared library offers.
pub fn exported(data: &[u8]) -> Result<Vec<Symbol>> {
    let (endian, sections) = sections(data)?;
    let table = sections.symbols(endian, data, object::elf::SHT_DYNSYM)?;
    let versions = sections.versions(endian, data)?;
    let versions = versions.context("no symbol of it has a version")?;
    let mut all = Vec::new();
    for (index, symbol) in table.enumerate() {
        let of = versions.version_index(endian, index);
        // A version has a symbol of its own, which is absolute.
        if matches!(symbol.st_shndx.get(endian), SHN_UNDEF | SHN_ABS) {
            continue;
        }
        let Some(version) = versions.version(of.index())? else {
            continue;
        };
        all.push(Symbol {
            name: str::from_utf8(table.symbol_name(endian, symbol)?)?.to_owned(),
            version: str::from_utf8(version.name())?.to_owned(),
            data: (symbol.st_type() == object::elf::STT_OBJECT).then(|| symbol.st_size.get(endian)),
        });
    }
    Ok(all)
}

/// A shared library's NEEDED entries and its SONAME.
pub fn needed(data: &[u8]) -> Result<(Vec<String>, Option<String>)> {
    let (endian, sections) = sections(data)?;
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

    fn floors(needs: &[&str]) -> Result<Floors> {
        let mut floors = Floors::default();
        needs.iter().try_for_each(|need| floors.add(need))?;
        Ok(floors)
    }

    /// torch 2.15's.
    fn torch() -> Floors {
        floors(&["GLIBC_2.17", "GLIBCXX_3.4.22", "CXXABI_1.3.11", "GCC_3.4"]).unwrap()
    }

    #[test]
    fn what_the_tag_and_torch_promise_and_nothing_newer() {
        let fits = |needs: &[&str], tag: &str| {
            let floors = floors(needs).unwrap();
            floors.require("it", tag, &torch()).is_ok()
        };
        for needs in [
            &["GLIBC_2.28", "GLIBCXX_3.4.22", "CXXABI_1.3.9"][..],
            &["libcudart.so.13", "ZLIB_1.2.9", "GCC_3.0"],
            &["GLIBC_2.2.5"],
        ] {
            assert!(fits(needs, BASE), "{needs:?}");
        }
        for newer in ["GLIBC_2.29", "GLIBC_ABI_DT_RELR", "GLIBCXX_3.4.23", "CXXABI_1.3.12", "GCC_12.0.0"] {
            assert!(!fits(&["GLIBC_2.17", newer], BASE), "{newer}");
            assert!(fits(&[newer], "linux_x86_64"), "{newer}");
        }
        let old = "manylinux_2_17_x86_64.manylinux2014_x86_64";
        assert!(fits(&["GLIBC_2.17"], old) && !fits(&["GLIBC_2.28"], old));
        assert!(!fits(&[], "win_amd64") && !fits(&[], "manylinux_2_28_s390x"));
        assert!(floors(&["GLIBC_PRIVATE"]).is_err());
    }

    #[test]
    fn the_refusal_names_what_is_too_new() {
        let needs = floors(&["GLIBC_2.34", "GLIBCXX_3.4.32"]).unwrap();
        insta::assert_snapshot!(needs.require("a.so", BASE, &torch()).unwrap_err());
    }

    /// An error, no panic.
    #[test]
    fn libraries_that_are_cut_short() {
        let whole = fs::read("/proc/self/exe").unwrap();
        assert!(Floors::of(&whole).unwrap().newest.contains_key("GLIBC"));
        for cut in [0, 4, 63, 64, whole.len() / 2, whole.len() - 1] {
            assert!(Floors::of(&whole[..cut]).is_err(), "{cut} bytes");
            assert!(exported(&whole[..cut]).is_err(), "{cut} bytes");
        }
    }
}
