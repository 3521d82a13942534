//! A release's series: exactly applied, or not at all.
//!
//! git applies patches; `ci/patch.py` has it export, carry over and compare series. This crate says which series each release has
//! (`release`, `series`), and how a series fits files (`fit`).
//! Fetches nothing, and knows no wheel but where one has upstream's headers.

pub mod apply;
pub mod fit;
#[cfg(any(test, feature = "fixture"))]
#[allow(missing_docs, reason = "for tests")]
pub mod fixture;
pub mod git;
pub mod release;
pub mod series;
#[cfg(test)]
mod tests;
pub mod tree;
