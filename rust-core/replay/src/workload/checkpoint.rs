//! Checkpoints staged in pinned memory and written in the background, as
//! `torch.distributed.checkpoint.async_save` does with a pinned stager.
//!
//! Llama-3-8B sharded over 16 ranks (FSDP2): a sixteenth of every parameter in bfloat16, and three times
//! the same in float32 for the optimizer. The shapes are the model's: embeddings and head of
//! 128,256 x 4096, and 32 layers with matrices of 4096 x 4096, 1024 x 4096 and 14336 x 4096 and two
//! norms. Every fifth step all 1,164 tensors, 6.5 GiB, are staged and copied out. Three steps later the
//! file is written, the tensors are freed and `empty_cache` is called. Every step copies a batch of
//! 4 x 8192 tokens and its labels (256 KiB each), and has another one loaded ahead.

use super::Program;
use super::script::{Handle, Script};

const RANKS: u64 = 16;
const LAYERS: usize = 32;
const EMBEDDING: u64 = 128_256 * 4096;
const LAYER: [u64; 9] =
    [4096 * 4096, 1024 * 4096, 1024 * 4096, 4096 * 4096, 14336 * 4096, 14336 * 4096, 14336 * 4096, 4096, 4096];
/// Bytes of an element: of the weight, and of the optimizer's three copies.
const COPIES: [u64; 4] = [2, 4, 4, 4];
const OUT: u32 = 1;
const BATCH: u64 = 4 * 8192 * 8;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Checkpoint {
    staged: Vec<Handle>,
    ahead: Vec<Handle>,
}

/// The sizes of a rank's tensors, in bytes.
fn tensors() -> impl Iterator<Item = u64> {
    COPIES.into_iter().flat_map(|element| {
        let layers = (0..LAYERS).flat_map(|_| LAYER);
        let ends = [EMBEDDING, 4096];
        let parameters = [EMBEDDING].into_iter().chain(layers).chain(ends);
        parameters.map(move |parameter| parameter / RANKS * element)
    })
}

impl Program for Checkpoint {
    fn step(&mut self, script: &mut Script, number: u32) {
        let next = vec![script.alloc(BATCH), script.alloc(BATCH)];
        let batch = std::mem::replace(&mut self.ahead, next);
        batch.iter().for_each(|it| script.copy(it, 0));
        script.wait(900_000);
        script.free_all(batch);
        match number % 5 {
            0 => {
                for bytes in tensors() {
                    let tensor = script.alloc(bytes);
                    script.copy(&tensor, OUT);
                    self.staged.push(tensor);
                }
            }
            3 => {
                script.free_all(self.staged.drain(..));
                script.clear();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_has_its_part_of_the_model() {
        let parameters = tensors().count() / COPIES.len();
        assert_eq!(parameters, 3 + 32 * 9);
        // 8,030 million parameters of 14 bytes on 16 ranks.
        assert_eq!(tensors().sum::<u64>(), 8_030_261_248 / 16 * 14);
    }
}
