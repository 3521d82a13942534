//! The step of pytorch/pytorch#186162: 155 activations of Llama-3-8B are offloaded, which takes 3 ms
//! each if each is pinned anew.
//!
//! There are five for each of 31 layers; those of the last layer are needed at once and stay on the
//! device. With 1024 tokens a rank in bfloat16 they are the layer's input (8 MiB), the projected
//! queries, keys and values (12 MiB), the attention's output (8 MiB), the input of the feed-forward part
//! (8 MiB) and its product (28 MiB). Forward copies them out, backward copies them back, last first.

use super::script::{Handle, Script};
use super::{Program, mib};

const LAYERS: usize = 31;
const LAYER: [u64; 5] = [mib(8.0), mib(12.0), mib(8.0), mib(8.0), mib(28.0)];
const OUT: u32 = 1;
const BACK: u32 = 2;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Tensors;

impl Program for Tensors {
    fn step(&mut self, script: &mut Script, _: u32) {
        let mut tensors: Vec<Handle> = Vec::new();
        for _ in 0..LAYERS {
            script.wait(2_000);
            for bytes in LAYER {
                let tensor = script.alloc(bytes);
                script.copy(&tensor, OUT);
                tensors.push(tensor);
            }
        }
        while let Some(tensor) = tensors.pop() {
            script.copy(&tensor, BACK);
            script.wait(800);
            script.free(tensor);
        }
        script.wait(50_000);
    }
}
