//! PyTorch's own tests of pinned memory, in each of the fork's configurations: what passes with the official wheel passes.

use anyhow::Result;

use super::Effort;
use super::row::Explored;
use crate::cli::TestUpstream;
use crate::upstream;

/// The check.
pub fn run(_effort: Effort) -> Result<Explored> {
    let tally = upstream::count(&TestUpstream {
        source: None,
        torch: None,
        stock: false,
        real: false,
        seam: false,
        device: false,
    })?;
    Ok(Explored::default()
        .figure("upstream tests passed", tally.passed as u64)
        .figure("known failures of stock", tally.skipped as u64)
        .note("with stock and in three configurations of the fork"))
}
