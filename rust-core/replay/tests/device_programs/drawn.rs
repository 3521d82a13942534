//! Programs whose steps draw the lengths of their batches anew: inference, training, and blocks that are held for some steps, on a
//! stream or several, with evaluations between. No step and no order of steps comes again in another run.

use pinbuddy_replay::device::Act;
use proptest::prelude::*;

use super::{Chance, Tape};

/// What becomes of a step's activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Each is freed when the next but one is asked for.
    Inference,
    /// All live until the way back.
    Training,
    /// One of a step is held, and given up when there are eight of them, at random.
    Held,
}

/// See the file's documentation. Sizes are in KiB.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    use_: Use,
    /// Of each layer: its weights, and the activations of one of a batch.
    layers: Vec<(u64, u64)>,
    batches: Vec<u64>,
    steps: usize,
    streams: u32,
    /// After so many steps comes an evaluation; 0: none.
    evaluates: usize,
    /// After so many steps the cache is emptied; 0: never.
    clears: usize,
}

impl Drawn {
    /// A run; lengths, and how the streams' acts mix, are drawn.
    pub(crate) fn acts(&self, chance: &mut Chance) -> Vec<Act> {
        let mut tapes: Vec<Vec<Act>> = Vec::new();
        let mut next = 0;
        for stream in 0..self.streams {
            let mut tape = Tape { next, ..Tape::default() };
            self.run(stream, &mut tape, chance);
            next = tape.next;
            tapes.push(tape.acts);
        }
        let mut at = vec![0; tapes.len()];
        let mut acts = Vec::new();
        while at.iter().zip(&tapes).any(|(at, tape)| *at < tape.len()) {
            let turn = chance.draw() as usize % tapes.len();
            let end = at[turn] + 1 + chance.draw() as usize % 20;
            let end = end.min(tapes[turn].len());
            acts.extend(&tapes[turn][at[turn]..end]);
            at[turn] = end;
        }
        acts
    }

    fn run(&self, stream: u32, tape: &mut Tape, chance: &mut Chance) {
        for &(weight, _) in &self.layers {
            tape.ask_on(stream, weight);
        }
        let mut has_state = false;
        let mut held = Vec::new();
        for step in 1..=self.steps {
            let batch = self.batches[chance.draw() as usize % self.batches.len()];
            self.step(stream, batch, tape, &mut has_state);
            if self.use_ == Use::Held {
                let (_, each) = self.layers[step % self.layers.len()];
                held.push(tape.ask_on(stream, batch * each));
                if held.len() > 7 {
                    let given_up = held.remove(chance.draw() as usize % held.len());
                    tape.free([given_up]);
                }
            }
            if self.evaluates > 0 && step % self.evaluates == 0 {
                for _ in 0..4 {
                    let extra = chance.draw() % 32;
                    let mut ask = |it: &(u64, u64)| tape.ask_on(stream, 16 * it.1 + extra);
                    let all: Vec<u32> = self.layers.iter().map(&mut ask).collect();
                    tape.free(all);
                }
            }
            if self.clears > 0 && step % self.clears == 0 {
                tape.acts.push(Act::Clear);
            }
        }
    }

    fn step(&self, stream: u32, batch: u64, tape: &mut Tape, has_state: &mut bool) {
        let mut kept: Vec<u32> = Vec::new();
        for &(_, each) in &self.layers {
            let buffer = tape.ask_on(stream, batch * each * 2);
            kept.push(tape.ask_on(stream, batch * each));
            tape.free([buffer]);
            if self.use_ == Use::Inference && kept.len() > 2 {
                tape.free([kept.remove(0)]);
            }
        }
        let mut gradients = Vec::new();
        if self.use_ == Use::Training {
            for &(weight, each) in self.layers.iter().rev() {
                let gradient = tape.ask_on(stream, batch * each);
                tape.free(kept.pop());
                gradients.push(tape.ask_on(stream, weight));
                tape.free([gradient]);
            }
            if !std::mem::replace(has_state, true) {
                for &(weight, _) in &self.layers {
                    tape.ask_on(stream, weight * 2);
                }
            }
            for &(weight, _) in &self.layers {
                let buffer = tape.ask_on(stream, weight);
                tape.free([buffer]);
            }
        }
        tape.free(gradients);
        tape.free(kept);
    }
}

prop_compose! {
    pub(crate) fn drawn()(
        use_ in prop_oneof![Just(Use::Inference), Just(Use::Training), Just(Use::Held)],
        layers in prop::collection::vec((256_u64..16_000, (6.0_f64..12.0).prop_map(|it| it.exp2() as u64)), 3..14),
        batches in prop_oneof![
            Just(vec![1_u64]), Just(vec![1, 2]), Just(vec![1, 2, 4, 8]), Just(vec![3, 5, 7, 8]), Just((1..17).collect::<Vec<_>>()),
        ],
        steps in 30_usize..80,
        streams in prop_oneof![3 => Just(1_u32), 1 => Just(2), 1 => Just(3), 1 => Just(5)],
        evaluates in prop_oneof![2 => Just(0_usize), 1 => Just(10), 1 => Just(17)],
        clears in prop_oneof![3 => Just(0_usize), 1 => Just(25)],
    ) -> Drawn {
        Drawn { use_, layers, batches, steps, streams, evaluates, clears }
    }
}
