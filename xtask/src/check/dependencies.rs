//! What we depend on: permissive licences, and the one registry. And advisories, where cargo-deny is installed.
//!
//! cargo-deny compiles for a quarter of an hour and reads its advisories from a repository of its own; so the rules
//! that need neither are ours, on what cargo says, and run with every `cargo xtask lint`. With cargo-deny its advisories
//! come on top, and what cannot be looked at is said.

use anyhow::{Context as _, Result, ensure};
use cargo_metadata::{MetadataCommand, Package};

use super::Effort;
use super::row::Explored;
use crate::support::refusal::refuse;
use crate::support::{cargo, paths};

/// Licences that ask for no more than to be named.
const PERMISSIVE: [&str; 9] = [
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// What may stand behind WITH.
const EXCEPTION: &str = "LLVM-exception";

/// The check.
pub fn run(_effort: Effort) -> Result<Explored> {
    let looked_at = own_rules()?;
    let explored = Explored::default().figure("packages", looked_at);
    let version = cargo::command().args(["deny", "--version"]).output();
    if !version.is_ok_and(|it| it.status.success()) {
        return Ok(explored.instead(
            "licences and sources by rules of our own; advisories not looked at (cargo install --locked cargo-deny)",
        ));
    }
    let advisories = cargo::command()
        .args(["deny", "check", "advisories"])
        .status()
        .context("running cargo deny")?;
    ensure!(advisories.success(), "cargo deny found an advisory");
    Ok(explored.note("licences, sources, advisories"))
}

/// Licences and sources of all packages; how many there are.
pub fn own_rules() -> Result<u64> {
    let metadata = MetadataCommand::new()
        .current_dir(paths::root())
        .other_options(["--locked".to_owned()])
        .exec()
        .context("asking cargo for all packages")?;
    let complaints: Vec<String> = metadata.packages.iter().filter_map(of_package).collect();
    if complaints.is_empty() {
        return Ok(metadata.packages.len() as u64);
    }
    Err(refuse("a dependency is not as it should be")
        .found(complaints.join("\n"))
        .expected("permissive licences, and packages of the default registry")
        .remedy(
            "do without it, or add its licence to xtask/src/check/dependencies.rs with a reason",
        )
        .into())
}

fn of_package(package: &Package) -> Option<String> {
    complaint(
        &format!("{} {}", package.name, package.version),
        package.license.as_deref(),
        package.source.as_ref().map(|it| it.repr.as_str()),
    )
}

fn complaint(package: &str, license: Option<&str>, source: Option<&str>) -> Option<String> {
    let of_the_registry = |it: &&str| it.starts_with("registry+") && it.ends_with("-index");
    if let Some(source) = source.filter(|it| !of_the_registry(it)) {
        return Some(format!("{package} comes from {source}"));
    }
    let Some(license) = license else {
        return Some(format!("{package} names no licence"));
    };
    (!is_permissive(license)).then(|| format!("{package} has the licence {license}"))
}

/// Whether one may choose permissive licences only: of alternatives one is enough, of what comes together all are
/// wanted. A slash stands for OR in old packages.
fn is_permissive(expression: &str) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = &words[..];
    any(&mut rest) == Some(true) && rest.is_empty()
}

/// `A OR B …`; AND binds closer. Nothing where it makes no sense.
fn any(rest: &mut &[&str]) -> Option<bool> {
    let mut good = every(rest)?;
    while let ["OR", more @ ..] = rest {
        *rest = more;
        good |= every(rest)?;
    }
    Some(good)
}

fn every(rest: &mut &[&str]) -> Option<bool> {
    let mut good = one(rest)?;
    while let ["AND", more @ ..] = rest {
        *rest = more;
        good &= one(rest)?;
    }
    Some(good)
}

fn one(rest: &mut &[&str]) -> Option<bool> {
    let (good, more) = match *rest {
        ["(", more @ ..] => {
            *rest = more;
            let good = any(rest)?;
            let [")", more @ ..] = *rest else {
                return None;
            };
            (good, more)
        }
        [licence, "WITH", exception, more @ ..] => {
            let good = PERMISSIVE.contains(licence) && *exception == EXCEPTION;
            (good, more)
        }
        [licence, more @ ..] => (PERMISSIVE.contains(licence), more),
        [] => return None,
    };
    *rest = more;
    Some(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_alternative_is_enough_and_all_parts_are_wanted() {
        for good in [
            "MIT",
            "MIT/GPL-3.0",
            "GPL-3.0-only OR Apache-2.0",
            "(MIT OR GPL-3.0-only) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0-only",
        ] {
            assert!(is_permissive(good), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "(MIT OR Apache-2.0",
            "MIT OR",
            "MIT Apache-2.0",
            "GPL-2.0-only WITH LLVM-exception",
            "Apache-2.0 WITH GCC-exception",
        ] {
            assert!(!is_permissive(bad), "{bad}");
        }
    }

    #[test]
    fn every_dependency_is_permissive_and_of_the_registry() {
        assert!(own_rules().unwrap() > 100);
        let complaint = |license, source| complaint("x 1.0.0", license, source);
        let git = complaint(Some("MIT"), Some("git+https://example.org/x#1"));
        assert!(git.is_some_and(|it| it.contains("comes from git+")));
        assert!(complaint(None, None).is_some());
        assert!(complaint(Some("AGPL-3.0"), None).is_some());
        assert_eq!(complaint(Some("MIT"), None), None);
    }
}
