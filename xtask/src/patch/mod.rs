//! A release's series: exactly applied, or not at all. `cargo xtask patch`, and what `build-wheel` uses.
//!
//! `series` and `hunk` read patches, `git` applies them, `judge` tries a series on files and names the
//! `outcome`, `survey` says where hunks belong that are not where they were, `replace` changes files.

pub mod apply;
pub mod change;
pub mod commits;
mod drift;
pub mod git;
pub mod hunk;
pub mod judge;
pub mod lint;
pub mod outcome;
mod pristine;
mod rebase;
pub mod replace;
mod repository;
pub mod series;
mod survey;
#[cfg(test)]
pub mod tests;
pub mod tree;
pub mod unsaved;
mod verify;

use std::path::Path;

use anyhow::Result;

use crate::cli::patch::{Command, Commits, Patch};
use crate::release::Versions;
use crate::support::paths;
use git::Direction;

/// The command.
pub fn run(args: &Patch) -> Result<()> {
    match &args.command {
        Command::Verify(args) => verify::run(args),
        Command::Apply(args) => change::run(args, Direction::Forward),
        Command::Unapply(args) => change::run(args, Direction::Reverse),
        Command::Lint => lint::run(),
        Command::Drift(args) => drift::run(args),
        Command::Import(args) => commits(args, commits::import),
        Command::Export(args) => commits(args, commits::export),
        Command::Rebase(args) => rebase::run(args),
    }
}

type Told = fn(&Path, &Versions, &Commits) -> Result<String>;

fn commits(args: &Commits, act: Told) -> Result<()> {
    let root = paths::root();
    print!("{}", act(root, &Versions::read(root)?, args)?);
    Ok(())
}
