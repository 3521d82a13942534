//! A PyTorch source tree, in git or not: its files, and the release that it is of.
//!
//! Invariant: reads only.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::fit;
use crate::release::{Release, Versions};
use xtask_support::hash::Digest;
use xtask_support::refusal::refuse;

/// The file with upstream's version: `2.15.0`, or `2.15.0a0`, which the tag may have, too.
const VERSION: &str = "version.txt";

/// A source tree.
#[derive(Debug)]
pub struct Tree {
    /// The root.
    pub root: PathBuf,
    /// The first word of version.txt.
    pub version: Option<String>,
    /// SHA-256 of the header that series change, if it is there.
    pub header: Option<String>,
}

impl Tree {
    /// Opens a folder; refuses one that is no PyTorch tree.
    pub fn open(root: &Path, versions: &Versions) -> Result<Self> {
        let root = std::fs::canonicalize(root).map_err(|error| not_a_tree(root, &error.to_string(), versions))?;
        let read = |path| fit::read_below(&root, path);
        let version = read(VERSION)?.and_then(|it| {
            let word = String::from_utf8_lossy(&it).split_whitespace().next()?.to_owned();
            Some(word)
        });
        let header = read(&versions.header)?;
        if version.is_none() && header.is_none() {
            let found = format!("neither {VERSION} nor {}", versions.header);
            return Err(not_a_tree(&root, &found, versions).into());
        }
        Ok(Self { root, version, header: header.map(|bytes| Digest::of(&bytes).hex()) })
    }

    /// The release of the tree. The header's hash decides, with the series or without it; version.txt decides where
    /// several releases ship one header, or no release ships this one.
    pub fn release<'a>(&self, versions: &'a Versions) -> Result<&'a Release> {
        // `2.15.0` of `2.15.0a0+git1234`.
        let version = self.version.as_deref().unwrap_or_default();
        let end = version.find(|it: char| !it.is_ascii_digit() && it != '.');
        let named = &version[..end.unwrap_or(version.len())];
        let mut known: Vec<&Release> = versions.source_releases.iter().collect();
        known.extend(versions.sorted());
        let ours = |it: &Release| {
            self.header.as_ref().is_some_and(|hash| [&it.header_sha256, &it.patched_sha256].contains(&hash))
        };
        let by_header = || known.iter().filter(|it| ours(it));
        let found = by_header().find(|it| it.version == named).or(by_header().next_back());
        let found = found.or_else(|| known.iter().find(|it| it.version == named));
        found.copied().with_context(|| self.unknown(versions))
    }

    fn unknown(&self, versions: &Versions) -> xtask_support::refusal::Refusal {
        let known = versions.listed();
        let found = format!(
            "{VERSION}: {}\n{}: SHA-256 {}",
            self.version.as_deref().unwrap_or("not there"),
            versions.header,
            self.header.as_deref().unwrap_or("not there"),
        );
        refuse(format!("{} is no release that there is a series for", self.root.display()))
            .found(found)
            .expected(format!("one of {known}, or a header that one of them ships"))
            .remedy(format!(
                "git checkout v{}, in a clone of pytorch; or see what moved: cargo xtask patch drift --source {}",
                known.rsplit(", ").next().unwrap_or_default(),
                self.root.display()
            ))
    }
}

fn not_a_tree(root: &Path, found: &str, versions: &Versions) -> xtask_support::refusal::Refusal {
    refuse(format!("{} is not a PyTorch source tree", root.display()))
        .found(found)
        .expected(format!("a folder with {VERSION} and {}", versions.header))
        .remedy("pass the root of a clone of pytorch, or of an unpacked source archive")
}
