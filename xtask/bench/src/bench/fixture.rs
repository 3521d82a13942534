//! What all parts share: the environments, the harness, and the effort.

use std::path::PathBuf;

use anyhow::Result;

use super::effort::Effort;
use super::environments::Environments;
use super::harness::Harness;
use super::subject::{Memory, Settings, Subject};

#[derive(Debug)]
pub struct Fixture {
    /// The environments and the CUDA runtime.
    pub environments: Environments,
    /// The harness.
    pub program: PathBuf,
    /// How much.
    pub effort: Effort,
}

impl Fixture {
    /// A process with one allocator.
    pub fn start(&self, subject: Subject, memory: Memory, more: Settings) -> Result<Harness> {
        let mut settings = subject.settings(memory);
        settings.extend(more);
        Harness::start(&self.environments, &self.program, subject, &settings)
    }

    /// A process with each timed allocator, stock first. Pages are locked only on real CUDA.
    pub fn start_all(&self, more: impl Fn(Subject) -> Settings) -> Result<Vec<Harness>> {
        let memory = self.environments.lightest();
        Subject::TIMED
            .iter()
            .map(|&subject| self.start(subject, memory, more(subject)))
            .collect()
    }
}
