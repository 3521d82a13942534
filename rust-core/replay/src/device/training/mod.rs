//! Generated trainings: what a rank asks of its device, with the dimensions of known models.
//!
//! ```text
//!   shapes     what layers make, in bytes
//!   tape       blocks, streams, and when these are done
//!   program    a rank: parameters, passes, gradients, the optimizer
//! ```
//!
//! The same seed gives the same acts. A seed decides what experts get and what differs, never the model.

mod program;
mod shapes;
mod tape;

use program::{Program, States};
use shapes::{Batch, GPT_2, LLAMA_2_7B, QWEN_14B, QWEN_MOE};

use super::Act;
use crate::schedule::Pipeline;

pub use program::Differs;

/// A training, by its name.
#[derive(Clone, Copy, Debug)]
pub struct Training {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its description, in a line.
    pub about: &'static str,
    program: Program,
}

/// One rank that has all layers.
const ALONE: Pipeline = Pipeline::of(1, 0, 1, 4);

/// The first of four stages.
const STAGE: Pipeline = Pipeline::of(4, 0, 1, 8);
const INTERLEAVED: Pipeline = Pipeline::of(4, 0, 2, 8);

const GPT_2_ALONE: Program = Program {
    shape: GPT_2,
    batch: Batch::of(4, 1024),
    layers: 24,
    tensor: 1,
    pipeline: ALONE,
    recompute: false,
    states: States::PerWeight,
    jitter: 0,
};

const LLAMA_STAGE: Program = Program {
    shape: LLAMA_2_7B,
    batch: Batch::of(1, 4096),
    layers: 8,
    tensor: 2,
    pipeline: STAGE,
    recompute: false,
    states: States::OneBuffer { ranks: 8 },
    jitter: 0,
};

const QWEN_STAGE: Program = Program { shape: QWEN_14B, layers: 10, tensor: 4, ..LLAMA_STAGE };

const EXPERTS: Program =
    Program { shape: QWEN_MOE, batch: Batch::of(2, 4096), layers: 6, tensor: 1, jitter: 20, ..LLAMA_STAGE };

/// All of them.
pub const TRAININGS: [Training; 10] = [
    Training {
        name: "gpt2",
        about: "GPT-2 medium on one device, AdamW, gradients for each weight",
        program: GPT_2_ALONE,
    },
    Training {
        name: "gpt2-recompute",
        about: "the same, activations computed again, four times the batch",
        program: Program { recompute: true, batch: Batch::of(16, 1024), ..GPT_2_ALONE },
    },
    Training {
        name: "llama2-7b-1f1b",
        about: "Llama-2-7B, the first of four stages, 1F1B, two ranks a layer",
        program: LLAMA_STAGE,
    },
    Training {
        name: "llama2-7b-last-stage",
        about: "the same, the last stage, with the loss",
        program: Program { pipeline: Pipeline { stage: 3, ..STAGE }, ..LLAMA_STAGE },
    },
    Training {
        name: "llama2-7b-interleaved",
        about: "the same, the first stage of an interleaved pipeline of two chunks",
        program: Program { pipeline: INTERLEAVED, ..LLAMA_STAGE },
    },
    Training {
        name: "llama2-7b-zero3",
        about: "Llama-2-7B, ZeRO-3 on 32 ranks, activations computed again",
        program: Program {
            layers: 32,
            tensor: 1,
            pipeline: ALONE,
            recompute: true,
            states: States::Weights { ranks: 32 },
            ..LLAMA_STAGE
        },
    },
    Training {
        name: "qwen-14b-recompute",
        about: "Qwen-14B, the first of four stages, 1F1B, activations computed again, four ranks a layer",
        program: Program { recompute: true, ..QWEN_STAGE },
    },
    Training {
        name: "qwen-14b-zero2",
        about: "Qwen-14B, the first of four stages, interleaved, ZeRO-2 on 8 ranks",
        program: Program { pipeline: INTERLEAVED, states: States::Gradients { ranks: 8 }, ..QWEN_STAGE },
    },
    Training {
        name: "qwen-moe",
        about: "Qwen1.5-MoE-A2.7B, the first of four stages, 1F1B; experts get 20 % more or less",
        program: EXPERTS,
    },
    Training {
        name: "qwen-moe-recompute",
        about: "the same, activations computed again",
        program: Program { recompute: true, ..EXPERTS },
    },
];

impl Training {
    /// The training of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        TRAININGS.iter().find(|it| it.name == name)
    }

    /// What it does in so many steps.
    pub fn acts(&self, seed: u64, steps: u32, differs: Differs) -> Vec<Act> {
        self.program.acts(seed, steps, differs)
    }

    /// Whether sizes differ from step to step.
    pub fn varies(&self) -> bool {
        self.program.jitter > 0
    }
}
