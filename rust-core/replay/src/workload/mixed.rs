//! Long-lived small buffers among short-lived large ones: the table of pytorch/pytorch#181094.
//!
//! Each step has 32 layers. A layer offloads two activations of up to 129.5 MiB, which live to the end
//! of the step, and pins 20 small buffers of 64 KiB to 3.5 MiB (optimizer states, norms, rows of
//! embeddings). Four in ten of these are freed at the end of their layer; the others stay, until 3.7 GB
//! are live, as in the issue. Then the cache is cleared.

use super::random::Random;
use super::script::{Handle, Script};
use super::{Program, mib};

const LARGE: [f64; 4] = [9.0, 33.0, 65.0, 129.5];
const SMALL: [f64; 6] = [0.0625, 0.25, 0.5, 1.0, 2.0, 3.5];
const LIVE: u64 = 3_700_000_000;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Mixed {
    random: Random,
    live: u64,
    kept: Vec<Handle>,
}

impl Mixed {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), live: 0, kept: Vec::new() }
    }
}

impl Program for Mixed {
    fn step(&mut self, script: &mut Script, _: u32) {
        let mut activations = Vec::new();
        for _ in 0..32 {
            for _ in 0..2 {
                let scale = self.random.between(0.8, 1.0);
                let bytes = mib(self.random.one_of(&LARGE) * scale);
                activations.push(script.alloc(bytes));
            }
            let mut passing = Vec::new();
            for _ in 0..20 {
                let bytes = mib(self.random.one_of(&SMALL));
                let buffer = script.alloc(bytes);
                if self.random.unit() < 0.4 || self.live >= LIVE {
                    passing.push(buffer);
                } else {
                    self.live += bytes;
                    self.kept.push(buffer);
                }
            }
            script.wait(10_000);
            script.free_all(passing);
        }
        script.free_all(activations);
    }
}
