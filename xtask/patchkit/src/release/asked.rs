//! The release that a user asked for.

use anyhow::Result;

use super::{Release, Versions, numbers};
use xtask_support::refusal::{Refusal, refuse};

/// The word for the newest release.
const LATEST: &str = "latest";

impl Versions {
    /// The release asked for, or the newest one: by its version, `2.15` for the last patch release of that
    /// minor one, or `latest`.
    pub fn find(&self, asked: Option<&str>) -> Result<&Release> {
        let known = self.sorted();
        let newest = known[known.len() - 1];
        let Some(asked) = asked.filter(|it| *it != LATEST) else {
            return Ok(newest);
        };
        // The patch releases of a minor one are neighbours, the last one last.
        let minor = format!("{asked}.");
        let is_meant = |it: &&&Release| {
            let version = &it.version;
            version == asked || (numbers(asked).len() == 2 && version.starts_with(&minor))
        };
        let found = known.iter().rev().find(is_meant).copied();
        found.ok_or_else(|| self.unknown(asked).into())
    }

    fn unknown(&self, asked: &str) -> Refusal {
        let expected = format!("one of {}", self.listed());
        let refusal = refuse(format!("torch {asked} is not a supported release")).found(asked);
        if self.source_releases.iter().any(|it| it.version == asked) {
            let build = format!("cargo xtask build-wheel --source DIR  # a tree of torch {asked}");
            return refusal.expected(format!("{expected}; of {asked} only the sources can be forked")).remedy(build);
        }
        refusal.expected(expected).remedy("pass one of them, or its minor version, or `latest`, with --torch")
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::releases;

    #[test]
    fn a_release_by_its_version_its_minor_one_or_as_the_latest() {
        for (asked, found) in [
            (None, "2.15.0"),
            (Some("latest"), "2.15.0"),
            (Some("2.15"), "2.15.0"),
            (Some("2.9"), "2.9.1"),
            (Some("2.9.0"), "2.9.0"),
        ] {
            assert_eq!(releases().find(asked).unwrap().version, found, "{asked:?}");
        }
        for asked in ["2", "2.1", "2.15.", "v2.15.0", ""] {
            assert!(releases().find(Some(asked)).is_err(), "{asked}");
        }
    }

    #[test]
    fn others_are_refused_with_those_that_there_are() {
        let all = ["2.15.1", "2.6.0"].map(|it| releases().unknown(it).to_string());
        insta::assert_snapshot!("unknown", all.join("\n\n"));
    }
}
