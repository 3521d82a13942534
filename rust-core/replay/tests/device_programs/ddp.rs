//! Data-parallel trainings: a batch comes on a stream of its own, and another one reads what layers put out. Both are done with a
//! block some acts after it was freed, at other moments in each run; what is asked for, in which order, is the same.

use pinbuddy_replay::device::Act;
use proptest::prelude::*;

use super::{Chance, Tape};

const COPIES: u32 = 1;
const SENDS: u32 = 2;

/// So many acts later at most another stream is done with a block; and where the weights are sent at first.
const LATEST: u64 = 40;
const LATEST_OF_SENT: u64 = 12;

/// See the file's documentation. Sizes are in KiB.
#[derive(Clone, Debug)]
pub(crate) struct Ddp {
    layers: usize,
    weight: u64,
    batch: u64,
    activation: u64,
    workspace: u64,
    /// Whether the optimizer's step has a buffer.
    has_buffer: bool,
}

impl Ddp {
    /// So many steps; when other streams are done is drawn.
    pub(crate) fn acts(&self, steps: usize, chance: &mut Chance) -> Vec<Act> {
        chance.complete_late(&self.steps(steps, |_| {}), LATEST, |_| false)
    }

    /// The same of one that sends its weights to all others before its first two steps, in pieces, each with a short message.
    pub(crate) fn sent(&self, steps: usize, chance: &mut Chance) -> Vec<Act> {
        let send = |tape: &mut Tape| {
            for _ in 0..3 {
                let sent = [1, self.weight * 2].map(|it| tape.ask(it));
                sent.into_iter().for_each(|it| tape.use_on(it, SENDS));
                tape.free(sent);
            }
        };
        chance.complete_late(&self.steps(steps, send), LATEST_OF_SENT, |_| false)
    }

    fn steps(&self, steps: usize, at_first: impl Fn(&mut Tape)) -> Vec<Act> {
        let mut tape = Tape::default();
        for _ in 0..self.layers {
            tape.ask(self.weight);
        }
        // Two buckets of gradients.
        for _ in 0..2 {
            tape.ask(self.weight * self.layers as u64 / 2);
        }
        for step in 0..steps {
            if step < 2 {
                at_first(&mut tape);
            }
            self.step(&mut tape);
        }
        tape.acts
    }

    fn step(&self, tape: &mut Tape) {
        let batch = tape.ask_on(COPIES, self.batch);
        tape.use_on(batch, 0);
        let mut outputs = Vec::new();
        for _ in 0..self.layers {
            let workspace = tape.ask(self.workspace);
            let output = tape.ask(self.activation);
            tape.free([workspace]);
            tape.use_on(output, SENDS);
            outputs.push(output);
        }
        let mut gradients = Vec::new();
        while let Some(output) = outputs.pop() {
            let gradient = tape.ask(self.activation);
            tape.pass(self.workspace);
            gradients.push(tape.ask(self.weight));
            tape.free([output, gradient]);
        }
        tape.free([batch]);
        if self.has_buffer {
            tape.pass(self.weight * self.layers as u64);
        }
        tape.free(gradients);
    }
}

prop_compose! {
    pub(crate) fn ddp()(
        layers in 2_usize..9,
        (weight, batch) in (300_u64..9000, 300_u64..9000),
        (activation, workspace) in (300_u64..20_000, 300_u64..40_000),
        has_buffer: bool,
    ) -> Ddp {
        Ddp { layers, weight, batch, activation, workspace, has_buffer }
    }
}
