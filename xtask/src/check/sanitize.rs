//! The C++ side of the bridge under sanitizers, by itself and as a whole library (`crate::sanitize`).

use anyhow::Result;

use super::Effort;
use super::row::Explored;
use crate::sanitize::{Sanitizer, long};

/// The check of races.
pub fn thread(effort: Effort) -> Result<Explored> {
    both_ways(Sanitizer::Thread, effort)
}

/// The check of memory, and of what C++ leaves undefined.
pub fn address(effort: Effort) -> Result<Explored> {
    both_ways(Sanitizer::Address, effort)
}

fn both_ways(sanitizer: Sanitizer, effort: Effort) -> Result<Explored> {
    let looked = long(sanitizer, effort.seconds)?;
    Ok(Explored::default()
        .figure("runs of units", looked.programs)
        .figure("seeded defects found", looked.defects)
        .figure("runs under torch", looked.library))
}
