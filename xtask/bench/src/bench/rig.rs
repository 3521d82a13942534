//! What all parts share: where programs run, the harness, and how much is measured.

use std::path::PathBuf;

use anyhow::Result;

use super::effort::Effort;
use super::harness::Harness;
use super::peer::{Memory, Peer, Settings};
use super::place::Place;

/// Ready to measure.
#[derive(Debug)]
pub struct Rig {
    /// The environments and the CUDA runtime.
    pub place: Place,
    /// The harness.
    pub program: PathBuf,
    /// How much.
    pub effort: Effort,
}

impl Rig {
    /// A process with one allocator.
    pub fn start(&self, peer: Peer, memory: Memory, more: Settings) -> Result<Harness> {
        let mut settings = peer.settings(memory);
        settings.extend(more);
        Harness::start(&self.place, &self.program, peer, &settings)
    }

    /// One with each allocator whose speed is compared, stock first; pages are locked only where
    /// nothing else can be.
    pub fn start_all(&self, more: impl Fn(Peer) -> Settings) -> Result<Vec<Harness>> {
        let memory = self.place.lightest();
        Peer::TIMED
            .iter()
            .map(|&peer| self.start(peer, memory, more(peer)))
            .collect()
    }
}
