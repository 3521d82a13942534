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

/// What a layer offloads, in bytes.
const LAYER: [u64; 6] = [
    mib(80.0),
    mib(80.0),
    mib(112.0),
    mib(1.25),
    32 << 10,
    32 << 10,
];
const STAGES: usize = 8;
const STAGE: usize = 4;
const LAYERS: usize = 6;
const MICRO_BATCHES: usize = 16;
/// Copies to the host, and back.
const OUT: u32 = 1;
const BACK: u32 = 2;
/// Microseconds that a layer takes.
const FORWARD: u64 = 8_000;
const BACKWARD: u64 = 16_000;

/// A part of the stage's layers, for one micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pass {
    chunk: usize,
    micro_batch: usize,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Training {
    chunks: usize,
}

impl Training {
    pub(super) fn one_f_one_b() -> Self {
        Self { chunks: 1 }
    }

    pub(super) fn interleaved() -> Self {
        Self { chunks: 2 }
    }

    /// How many passes go forward before the first one goes back.
    fn warm_up(&self) -> usize {
        let ahead = STAGES - STAGE - 1;
        if self.chunks == 1 {
            ahead
        } else {
            2 * ahead + (self.chunks - 1) * STAGES
        }
    }

    /// The stage's n-th pass forward, counted over all chunks: each chunk takes as many
    /// micro-batches as there are stages, in turn.
    fn forward(&self, n: usize) -> Pass {
        let round = STAGES * self.chunks;
        Pass {
            chunk: n % round / STAGES,
            micro_batch: n / round * STAGES + n % STAGES,
        }
    }

    /// The n-th pass backward: the chunks in the other order.
    fn backward(&self, n: usize) -> Pass {
        let Pass { chunk, micro_batch } = self.forward(n);
        Pass {
            chunk: self.chunks - 1 - chunk,
            micro_batch,
        }
    }
}

impl Program for Training {
    fn step(&mut self, script: &mut Script, _: u32) {
        let passes = MICRO_BATCHES * self.chunks;
        let mut on_host: BTreeMap<Pass, Vec<Handle>> = BTreeMap::new();
        for n in 0..passes + self.warm_up() {
            if n < passes {
                let blocks = on_host.entry(self.forward(n)).or_default();
                for _ in 0..LAYERS / self.chunks {
                    script.wait(FORWARD);
                    for bytes in LAYER {
                        let block = script.alloc(bytes);
                        script.copy(&block, OUT);
                        blocks.push(block);
                    }
                }
            }
            if let Some(n) = n.checked_sub(self.warm_up()) {
                let blocks = on_host.remove(&self.backward(n)).unwrap_or_default();
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(training: &Training) -> (Vec<Pass>, Vec<Pass>) {
        let all = 0..MICRO_BATCHES * training.chunks;
        let forward = all.clone().map(|n| training.forward(n)).collect();
        (forward, all.map(|n| training.backward(n)).collect())
    }

    #[test]
    fn every_pass_goes_forward_once_and_back_once_and_later() {
        for training in [Training::one_f_one_b(), Training::interleaved()] {
            let (forward, backward) = passes(&training);
            for (n, pass) in backward.iter().enumerate() {
                let at = forward.iter().position(|it| it == pass).unwrap();
                assert!(at <= n + training.warm_up(), "{pass:?}");
            }
            let mut sorted = forward.clone();
            sorted.sort();
            sorted.dedup();
            assert_eq!(sorted.len(), forward.len());
        }
    }

    #[test]
    fn the_schedules_of_the_papers() {
        let one = Training::one_f_one_b();
        assert_eq!(one.warm_up(), 3, "stages behind it");
        assert_eq!(
            one.forward(5),
            Pass {
                chunk: 0,
                micro_batch: 5
            }
        );
        let two = Training::interleaved();
        assert_eq!(two.warm_up(), 14);
        assert_eq!(
            two.forward(7),
            Pass {
                chunk: 0,
                micro_batch: 7
            }
        );
        assert_eq!(
            two.forward(8),
            Pass {
                chunk: 1,
                micro_batch: 0
            }
        );
        assert_eq!(
            two.forward(16),
            Pass {
                chunk: 0,
                micro_batch: 8
            }
        );
        assert_eq!(
            two.backward(0),
            Pass {
                chunk: 1,
                micro_batch: 0
            }
        );
    }
}
