//! `cargo xtask matrix`: builds and tries the fork of every supported release.
//!
//! One release after the other, so that only one wheel and one environment need disk space at a time; extracted
//! headers and libraries stay in the cache. Invariant: a failed release does not stop the others.

mod run;
mod table;

use std::fs;

use anyhow::{Context, Result};

use crate::cli;
use crate::support::paths;
use crate::support::refusal::refuse;
use xtask_patchkit::release::{Release, Versions};

pub fn run(args: &cli::Matrix) -> Result<()> {
    let versions = Versions::read(paths::root())?;
    let mut rows = Vec::new();
    for release in releases(&versions, &args.torch)? {
        eprintln!("\n== torch {}", release.version);
        rows.push(run::release(&release.version, args));
    }
    print!("\n{}", table::text(&rows));
    if let Some(file) = &args.json {
        fs::write(file, serde_json::to_string_pretty(&rows)? + "\n")
            .with_context(|| format!("writing {}", file.display()))?;
    }
    let failed: Vec<_> = rows.iter().filter(|row| row.failed()).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = failed.iter().map(|row| row.torch.as_str()).collect();
    Err(refuse(format!("torch {} failed", names.join(", ")))
        .found("the errors above")
        .remedy(format!("cargo xtask matrix --torch {}", names[0]))
        .into())
}

/// The requested releases, or the last patch release of each minor one.
fn releases<'a>(versions: &'a Versions, asked: &[String]) -> Result<Vec<&'a Release>> {
    if !asked.is_empty() {
        return asked.iter().map(|it| versions.find(Some(it))).collect();
    }
    let minor = |release: &Release| release.version.rsplit_once('.').map(|it| it.0.to_owned());
    let all = versions.sorted();
    let last = |at: usize| {
        let next = all.get(at + 1);
        next.is_none_or(|next| minor(next) != minor(all[at]))
    };
    Ok((0..all.len())
        .filter(|at| last(*at))
        .map(|at| all[at])
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_minor_release_has_one_row() {
        let versions = Versions::read(paths::root()).unwrap();
        let chosen = releases(&versions, &[]).unwrap();
        let names: Vec<_> = chosen.iter().map(|it| it.version.as_str()).collect();
        let all = [
            "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0",
        ];
        assert_eq!(names, all);
    }

    #[test]
    fn a_patch_release_has_one_when_it_is_asked_for() {
        let versions = Versions::read(paths::root()).unwrap();
        let chosen = releases(&versions, &["2.9.0".to_owned()]).unwrap();
        assert_eq!(chosen[0].version, "2.9.0");
        let chosen = releases(&versions, &["2.9".to_owned()]).unwrap();
        assert_eq!(chosen[0].version, "2.9.1");
        releases(&versions, &["2.7".to_owned()]).unwrap_err();
    }
}
