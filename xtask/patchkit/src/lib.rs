//! A release's series: exactly applied, or not at all.
//!
//! git applies, commits, exports, rebases and compares patches (`git`, `commits`, `repository`); diffy reads them. Ours is
//! what git does not do: `release` says which series each release has, `judge` tries a series on copies of files and
//! names the `outcome`, `survey` says where hunks belong that do not apply, `replace` changes all files or none.
//! Fetches nothing, and knows no wheel but where one has upstream's headers.

pub mod apply;
pub mod aside;
pub mod change;
pub mod commits;
pub mod drift;
pub mod files;
#[cfg(any(test, feature = "fixture"))]
#[allow(missing_docs, reason = "for tests")]
pub mod fixture;
pub mod git;
pub mod judge;
pub mod lint;
pub mod outcome;
mod place;
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
