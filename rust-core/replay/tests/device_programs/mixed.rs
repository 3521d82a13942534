//! Random trainings whose batches have one of several shapes, such as lengths or resolutions, in an order that each run draws anew.
//! Adam's state is made in the first step, whichever shape that has.

use pinbuddy_replay::device::Act;
use proptest::prelude::*;

use super::{Chance, Tape};

/// See the file's documentation. Sizes are in KiB, those of activations for a batch of length 100.
#[derive(Clone, Debug)]
pub(crate) struct Mixed {
    layers: usize,
    weight: u64,
    activation: u64,
    /// Grows with the square of the length.
    scores: u64,
    logits: u64,
    lengths: Vec<u64>,
    /// An epoch has each length so many times.
    repeats: usize,
    /// After each epoch.
    evaluates: bool,
    /// The program says where an iteration ends.
    marks: bool,
    /// Each batch has a length of its own, between the shortest and the longest.
    varies: bool,
    /// Weights' gradients live until the next step begins.
    late: bool,
}

impl Mixed {
    /// Two epochs in an order that `chance` draws.
    pub(crate) fn acts(&self, chance: &mut Chance) -> Vec<Act> {
        let mut tape = Tape::default();
        for _ in 0..self.layers {
            tape.ask(self.weight);
            tape.ask(self.weight * 4);
        }
        let (mut gradients, mut has_state) = (Vec::new(), false);
        for _ in 0..2 {
            for length in self.epoch(chance) {
                tape.free(gradients.drain(..));
                gradients = self.step(length, &mut tape, &mut has_state);
                if !self.late {
                    tape.free(gradients.drain(..));
                }
                if self.marks {
                    tape.acts.push(Act::Iter);
                }
            }
            tape.free(gradients.drain(..));
            if self.evaluates {
                for &length in &self.lengths {
                    let kept = self.forward(length, &mut tape, false);
                    let logits = tape.ask(self.logits * length / 100);
                    tape.free(kept.into_iter().chain([logits]));
                }
            }
        }
        tape.acts
    }

    /// The lengths of an epoch's batches.
    fn epoch(&self, chance: &mut Chance) -> Vec<u64> {
        let count = self.lengths.len();
        let mut lengths: Vec<u64> = self.lengths.repeat(self.repeats);
        for at in (1..lengths.len()).rev() {
            lengths.swap(at, chance.draw() as usize % (at + 1));
        }
        if self.varies {
            let least = self.lengths.iter().min().copied().unwrap_or(1);
            let most = self.lengths.iter().max().copied().unwrap_or(1);
            let drawn = || least + chance.draw() % (most - least + 1);
            lengths = std::iter::repeat_with(drawn).take(count * self.repeats).collect();
        }
        lengths
    }

    /// What a batch keeps for its way back.
    fn forward(&self, length: u64, tape: &mut Tape, trains: bool) -> Vec<u32> {
        let activation = self.activation * length / 100;
        let mut kept = Vec::new();
        for _ in 0..self.layers {
            let input = tape.ask(activation);
            let buffer = tape.ask(activation * 3);
            let scores = tape.ask(self.scores * length * length / 10_000);
            let output = tape.ask(activation * 2);
            tape.free([buffer]);
            match trains {
                true => kept.extend([input, scores, output]),
                false => tape.free([input, scores, output]),
            }
        }
        kept
    }

    /// The gradients of weights.
    fn step(&self, length: u64, tape: &mut Tape, has_state: &mut bool) -> Vec<u32> {
        let activation = self.activation * length / 100;
        let mut kept = self.forward(length, tape, true);
        let logits = tape.ask(self.logits * length / 100);
        let loss = tape.ask(self.logits * length / 100);
        let mut gradient = tape.ask(activation * 2);
        tape.free([logits, loss]);
        let mut gradients = Vec::new();
        for _ in 0..self.layers {
            let wide = tape.ask(activation * 3);
            gradients.push(tape.ask(self.weight * 4));
            tape.free(kept.pop());
            let scores = tape.ask(self.scores * length * length / 10_000);
            gradients.push(tape.ask(self.weight));
            tape.free(kept.pop());
            let next = tape.ask(activation * 2);
            tape.free([wide, scores, gradient]);
            gradient = next;
            tape.free(kept.pop());
        }
        tape.free([gradient]);
        if !std::mem::replace(has_state, true) {
            for _ in 0..self.layers {
                for weight in [self.weight, self.weight, self.weight * 4, self.weight * 4] {
                    tape.ask(weight);
                }
            }
        }
        for weight in [self.weight, self.weight * 4] {
            tape.pass(weight);
        }
        gradients
    }
}

prop_compose! {
    pub(crate) fn mixed()(
        layers in 2_usize..9,
        (weight, activation, scores, logits) in (300_u64..4000, 300_u64..12_000, 100_u64..20_000, 300_u64..60_000),
        lengths in prop::collection::hash_set(20_u64..200, 3..7),
        repeats in 2_usize..5,
        evaluates in prop::bool::weighted(0.4),
        marks in prop::bool::weighted(0.2),
        varies in prop::bool::weighted(0.2),
        late: bool,
    ) -> Mixed {
        let mut lengths: Vec<u64> = lengths.into_iter().collect();
        lengths.sort_unstable();
        Mixed { layers, weight, activation, scores, logits, lengths, repeats, evaluates, marks, varies, late }
    }
}
