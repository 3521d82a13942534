//! The release that a user asked for. A refusal ends in the typed command with a release that would work.

use anyhow::Result;

use super::{Release, Versions, numbers};
use xtask_support::refusal::{Refusal, refuse};
use xtask_support::typed;

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
        found.ok_or_else(|| self.unknown(asked, &typed::arguments()).into())
    }

    fn unknown(&self, asked: &str, typed: &[String]) -> Refusal {
        let known: Vec<_> = self.sorted().iter().map(|it| it.version.as_str()).collect();
        let expected = format!("one of {}", known.join(", "));
        let refusal = refuse(format!("torch {asked} is not a supported release")).found(asked);
        if self.source_releases.iter().any(|it| it.version == asked) {
            let build = format!("cargo xtask build-wheel --source DIR  # a tree of torch {asked}");
            return refusal
                .expected(format!(
                    "{expected}; of {asked} only the sources can be forked"
                ))
                .remedy(build);
        }
        let nearest = nearest(asked, &known);
        let command = typed::replaced(typed, asked, nearest);
        refusal
            .expected(expected)
            .remedy(command.unwrap_or_else(|| format!("use torch {nearest}, the nearest one")))
    }
}

/// The release that the user probably meant, of releases in order, or [`LATEST`].
fn nearest<'a>(asked: &str, known: &[&'a str]) -> &'a str {
    let is_version = asked.starts_with(|it: char| it.is_ascii_digit())
        && asked.chars().all(|it| it.is_ascii_digit() || it == '.');
    let distance = |version: &str| {
        if !is_version {
            return [strsim::damerau_levenshtein(asked, version) as u32, 0, 0];
        }
        let (a, b) = (numbers(asked), numbers(version));
        let part = |at: usize| {
            let of = |it: &[u32]| it.get(at).copied().unwrap_or(0);
            of(&a).abs_diff(of(&b))
        };
        [part(0), part(1), part(2)]
    };
    // The newest of the nearest.
    let all = known.iter().rev().copied();
    let word = (!is_version).then_some(LATEST);
    all.chain(word)
        .min_by_key(|it| distance(it))
        .unwrap_or(LATEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{releases, typed};

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
    fn others_are_refused_with_the_command_for_the_nearest() {
        let refused = |asked, line| releases().unknown(asked, &typed(line)).to_string();
        let all = [
            refused("2.15.1", "test --torch 2.15.1 --quick"),
            refused("1.13.0", "venv --torch=1.13.0"),
            refused("2.6.0", "venv --torch 2.6.0"),
            refused("2.90.0", "build-plugin --wheel torch-2.90.0-x.whl"),
        ];
        insta::assert_snapshot!("unknown", all.join("\n\n"));
    }

    #[test]
    fn the_nearest_is_by_number_or_else_by_letter() {
        let known = ["2.8.0", "2.9.0", "2.9.1", "2.15.0"];
        for (asked, expected) in [
            ("2.15.3", "2.15.0"),
            ("2.16", "2.15.0"),
            ("2.7.1", "2.8.0"),
            ("2.9.7", "2.9.1"),
            ("3", "2.8.0"),
            ("v2.9.0", "2.9.0"),
            ("2.15.O", "2.15.0"),
            ("2.9.1+cu128", "2.9.1"),
            ("latst", "latest"),
        ] {
            assert_eq!(nearest(asked, &known), expected, "{asked}");
        }
    }
}
