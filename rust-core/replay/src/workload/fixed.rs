//! Buffers of one size from bug reports: 129.5 MiB (pytorch/pytorch#150517) and 2.083 GiB
//! (pytorch/pytorch#95823), which rounding to powers of two nearly doubles.

use super::script::{Handle, Script};
use super::{Program, mib};

/// Allocated in the first step and kept to the end.
#[derive(Debug)]
pub(super) struct Fixed {
    bytes: u64,
    count: usize,
    kept: Vec<Handle>,
}

impl Fixed {
    pub(super) fn mebibytes(mebibytes: f64, count: usize) -> Self {
        Self { bytes: mib(mebibytes), count, kept: Vec::new() }
    }
}

impl Program for Fixed {
    fn step(&mut self, script: &mut Script, _: u32) {
        while self.kept.len() < self.count {
            self.kept.push(script.alloc(self.bytes));
            script.wait(1_000);
        }
    }
}
