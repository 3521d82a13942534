//! Training with activation offload in a pipeline.
//!
//! A stage of a 48-layer transformer with Qwen2.5-14B's shapes (hidden size 5120, 40 heads and 8 for
//! keys and values of 128 each), one sequence of 8192 tokens a micro-batch, in bfloat16. For each layer
//! the forward pass copies to the host: its input and the attention's output (80 MiB each), the
//! projected queries, keys and values (112 MiB), the log-sum-exp of the softmax (1.25 MiB) and two
//! normalisations' scales (32 KiB each). The backward pass copies them back and frees them. The
//! schedules are 1F1B (Narayanan et al., SOSP 2019) and Megatron-LM's interleaved one with two chunks a
//! stage (SC 2021): stage 4 of 8, 16 micro-batches, six layers a stage. So 4 micro-batches of 1.6 GiB
//! are on the host at once, or 15 chunks of half as much.

use std::collections::BTreeMap;

use super::script::{Handle, Script};
use super::{Program, mib};
use crate::schedule::{Pass, Pipeline};

/// What a layer offloads, in bytes.
const LAYER: [u64; 6] = [mib(80.0), mib(80.0), mib(112.0), mib(1.25), 32 << 10, 32 << 10];
const LAYERS: usize = 6;
/// Copies to the host, and back.
const OUT: u32 = 1;
const BACK: u32 = 2;
/// Microseconds that a layer takes.
const FORWARD: u64 = 8_000;
const BACKWARD: u64 = 16_000;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Training(Pipeline);

impl Training {
    /// The stage with its layers in so many chunks: with one it is 1F1B's, with more the interleaved one.
    pub(super) fn of_chunks(chunks: usize) -> Self {
        Self(Pipeline::of(8, 4, chunks, 16))
    }
}

impl Program for Training {
    fn step(&mut self, script: &mut Script, _: u32) {
        let mut on_host: BTreeMap<(usize, usize), Vec<Handle>> = BTreeMap::new();
        for Pass { chunk, micro_batch, forward } in self.0.passes() {
            let pass = (chunk, micro_batch);
            if forward {
                let blocks = on_host.entry(pass).or_default();
                for _ in 0..LAYERS / self.0.chunks {
                    script.wait(FORWARD);
                    for bytes in LAYER {
                        let block = script.alloc(bytes);
                        script.copy(&block, OUT);
                        blocks.push(block);
                    }
                }
                continue;
            }
            let blocks = on_host.remove(&pass).unwrap_or_default();
            for (place, block) in blocks.into_iter().rev().enumerate() {
                script.copy(&block, BACK);
                script.free(block);
                if place % LAYER.len() == LAYER.len() - 1 {
                    script.wait(BACKWARD);
                }
            }
        }
    }
}
