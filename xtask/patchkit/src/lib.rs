//! A release's series: exactly applied, or not at all.
//!
//! `release` says which series each release has, `series` and `hunk` read patches, `git` applies them, `judge` tries a
//! series on files and names the `outcome`, `survey` says where hunks belong that are not where they were, `replace`
//! changes files. Fetches nothing, and knows no wheel but where one has upstream's headers.

pub mod apply;
pub mod change;
pub mod commits;
pub mod drift;
#[cfg(any(test, feature = "fixture"))]
#[allow(missing_docs, reason = "for tests")]
pub mod fixture;
pub mod git;
pub mod hunk;
pub mod judge;
pub mod lint;
pub mod outcome;
pub mod rebase;
pub mod release;
pub mod replace;
mod repository;
pub mod series;
mod survey;
#[cfg(test)]
mod tests;
pub mod tree;
pub mod unsaved;
pub mod verify;

use std::path::Path;

use anyhow::Result;

use release::Versions;

/// [`commits::import`] or [`commits::export`]: on the checkout of ours, a checkout of PyTorch, and for the release that
/// somebody named.
pub type Told = fn(&Path, &Versions, &Path, Option<&str>) -> Result<String>;
