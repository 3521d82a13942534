//! Programs that are replayed, and the inputs of their second runs.

use std::path::{Path, PathBuf};

use anyhow::Result;
use pinbuddy_replay::workload::{Sizes, Workload};

use super::trace::Compact;

/// Of what is drawn at random.
pub const SEED: u64 = 1;
/// The same in second runs of programs whose sizes vary: a plan that was made of the very same requests would be no wonder.
const OTHER_SEEDS: [u64; 4] = [2, 3, 4, 5];

/// A program to replay.
pub struct Program {
    pub name: String,
    pub sizes: Sizes,
    from: Origin,
}

enum Origin {
    Workload(&'static Workload),
    File(PathBuf),
}

impl Program {
    pub fn made_up(workload: &'static Workload) -> Self {
        Self {
            name: workload.name.to_owned(),
            sizes: workload.sizes,
            from: Origin::Workload(workload),
        }
    }

    /// A trace given by the user, with any sizes.
    pub fn recorded(path: &Path) -> Self {
        Self {
            name: path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            sizes: Sizes::Vary,
            from: Origin::File(path.to_owned()),
        }
    }

    pub fn trace(&self, seed: u64) -> Result<Compact> {
        match &self.from {
            Origin::Workload(workload) => Compact::of(workload.events(seed, workload.steps)),
            Origin::File(path) => Compact::read(path),
        }
    }

    /// What second runs draw with: other inputs than the first one, where it had any. Of a file there is only one run.
    pub fn second_seeds(&self) -> &'static [u64] {
        match (&self.from, self.sizes) {
            (Origin::Workload(_), Sizes::Vary) => &OTHER_SEEDS,
            _ => &[SEED],
        }
    }
}

#[cfg(test)]
mod tests {
    use pinbuddy_replay::workload::WORKLOADS;

    use super::*;

    #[test]
    fn where_sizes_vary_no_second_run_has_the_inputs_of_the_first() {
        for workload in &WORKLOADS {
            let program = Program::made_up(workload);
            let first = program.trace(SEED).unwrap();
            for &seed in program.second_seeds() {
                let is_same = program.trace(seed).unwrap() == first;
                assert_eq!(
                    is_same,
                    workload.sizes == Sizes::Fixed,
                    "{} {seed}",
                    workload.name
                );
            }
        }
        let file = Program::recorded(Path::new("run.jsonl"));
        assert_eq!(file.second_seeds(), [SEED], "there is no other");
    }
}
