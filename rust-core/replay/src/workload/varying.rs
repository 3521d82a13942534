//! Sequence lengths that differ from step to step.
//!
//! Nine pairs of buffers of 3 to 200 MiB, as a model's few large and many small activations. In each
//! step each is scaled at random by 0.7 to 1.3; it lives to the end of the step, and never has the same
//! size again. Power-of-two lists mostly find a block that is long enough; lists of exact sizes pin more
//! and more.

use super::random::Random;
use super::script::Script;
use super::{Program, mib};

const MEBIBYTES: [f64; 9] = [3.0, 7.0, 12.0, 20.0, 33.0, 48.0, 65.0, 110.0, 200.0];

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Varying(Random);

impl Varying {
    pub(super) fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }
}

impl Program for Varying {
    fn step(&mut self, script: &mut Script, _: u32) {
        let mut buffers = Vec::new();
        for mebibytes in MEBIBYTES {
            for _ in 0..2 {
                let bytes = mib(mebibytes * self.0.between(0.7, 1.3));
                buffers.push(script.alloc(bytes));
                script.wait(10_000);
            }
        }
        script.free_all(buffers);
    }
}
