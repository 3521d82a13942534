//! ZeRO-offload (Ren et al., ATC 2021; DeepSpeed's `offload_optimizer` with `pin_memory`).
//!
//! Llama-3-8B's 8,030 million parameters on 16 ranks. Each rank keeps on the host, for the whole run, its
//! part of the optimizer's state (weights, momentum and variance in float32, 1.87 GiB each) and of the
//! gradients (float32). In the backward pass gradients arrive in buckets of 500 million elements,
//! DeepSpeed's `reduce_bucket_size`: a sixteenth of each bucket, 59.6 MiB in bfloat16, is copied to a
//! pinned buffer, which is freed once it is added up. After the optimizer's step the weights return in
//! bfloat16 through two alternating buffers of that size. Each step also takes a few hundred bytes for
//! norms and the loss.

use super::Program;
use super::script::{Handle, Script};

const PARAMETERS: u64 = 8_030_261_248;
const RANKS: u64 = 16;
const BUCKET: u64 = 500_000_000;
const BFLOAT16: u64 = 2;
const FLOAT32: u64 = 4;
const OUT: u32 = 1;
const BACK: u32 = 2;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Zero {
    kept: Vec<Handle>,
}

/// The elements of each bucket that are this rank's.
fn buckets() -> impl DoubleEndedIterator<Item = u64> {
    let whole = PARAMETERS / BUCKET;
    (0..=whole).map(move |n| {
        let elements = BUCKET.min(PARAMETERS - n * BUCKET);
        elements.div_ceil(RANKS)
    })
}

impl Program for Zero {
    fn step(&mut self, script: &mut Script, number: u32) {
        if number == 0 {
            let part = PARAMETERS.div_ceil(RANKS) * FLOAT32;
            self.kept = (0..4).map(|_| script.alloc(part)).collect();
        }
        script.wait(400_000);
        let mut adding: Option<Handle> = None;
        for elements in buckets().rev() {
            script.wait(40_000);
            let bucket = script.alloc(elements * BFLOAT16);
            script.copy(&bucket, OUT);
            // While this bucket arrives, the one before is added up.
            script.free_all(adding.replace(bucket));
        }
        script.free_all(adding);
        let norms = [4, 4, 512].map(|bytes| script.alloc(bytes));
        script.wait(300_000);
        script.free_all(norms);
        let mut going: Option<Handle> = None;
        for elements in buckets() {
            let weights = script.alloc(elements * BFLOAT16);
            script.wait(3_000);
            script.copy(&weights, BACK);
            script.free_all(going.replace(weights));
        }
        script.free_all(going);
    }
}
