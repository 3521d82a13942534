//! A program that looks for the largest batch that fits: it tries one, and where memory runs out it frees all but the weights, empties
//! the cache and tries a shorter one. What it asks for depends on what it gets, so it runs on a model.

use pinbuddy_replay::device::{Act, Device, OutOfMemory};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

/// It looks no further once it knows the batch to so much of a layer's output.
const NEAR: u64 = MIB;

/// See the file's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Finder {
    layers: usize,
    /// Bytes.
    weight: u64,
    /// Of a layer's output with the longest batch that is tried.
    longest: u64,
    steps: usize,
}

/// What the program does on a model.
struct Run<'m, D> {
    model: &'m mut D,
    acts: Vec<Act>,
    next: u32,
    state: Vec<u32>,
}

impl Finder {
    /// The largest batch, as the bytes of a layer's output, and what was done.
    pub(crate) fn find(&self, model: &mut impl Device) -> Result<(u64, Vec<Act>), OutOfMemory> {
        let mut run = Run {
            model,
            acts: Vec::new(),
            next: 0,
            state: Vec::new(),
        };
        for _ in 0..self.layers {
            run.ask(self.weight)?;
        }
        let (mut fits, mut fails) = (0, self.longest);
        while fails - fits > NEAR {
            let batch = u64::midpoint(fits, fails);
            let is_enough = (0..2).all(|_| run.try_step(self, batch));
            *(if is_enough { &mut fits } else { &mut fails }) = batch;
        }
        for _ in 0..self.steps {
            run.try_step(self, fits);
        }
        Ok((fits, run.acts))
    }

    /// The most that it asks for at once, nearly: a device that has as much finds the longest batch.
    pub(crate) fn most(&self) -> u64 {
        self.layers as u64 * (2 * self.longest + 5 * self.weight)
    }
}

impl<D: Device> Run<'_, D> {
    fn act(&mut self, act: Act) {
        match act {
            Act::Free { block } => self.model.free(block),
            _ => self.model.clear(),
        }
        self.acts.push(act);
    }

    fn ask(&mut self, bytes: u64) -> Result<u32, OutOfMemory> {
        let (block, stream) = (self.next, 0);
        self.model.allocate(block, bytes, stream)?;
        self.next += 1;
        self.acts.push(Act::Alloc {
            block,
            bytes,
            stream,
        });
        Ok(block)
    }

    /// Whether memory sufficed for a step.
    fn try_step(&mut self, finder: &Finder, batch: u64) -> bool {
        let mut own = Vec::new();
        let done = self.step(finder, batch, &mut own).is_ok();
        while let Some(block) = own.pop() {
            self.act(Act::Free { block });
        }
        if !done {
            self.act(Act::Clear);
        }
        done
    }

    /// `own` has what the step has not freed.
    fn step(&mut self, it: &Finder, batch: u64, own: &mut Vec<u32>) -> Result<(), OutOfMemory> {
        let mut kept = Vec::new();
        for _ in 0..2 * it.layers {
            let output = self.ask(batch)?;
            own.push(output);
            kept.push(output);
            if kept.len() % 2 == 1 {
                let workspace = self.ask(MIB)?;
                self.act(Act::Free { block: workspace });
            }
        }
        while let Some(output) = kept.pop() {
            let gradient = self.ask(batch)?;
            self.act(Act::Free { block: gradient });
            if kept.len() % 2 == 1 {
                own.push(self.ask(it.weight)?);
            }
            own.retain(|block| *block != output);
            self.act(Act::Free { block: output });
        }
        while self.state.len() < 2 * it.layers {
            let state = self.ask(it.weight)?;
            self.state.push(state);
        }
        Ok(())
    }
}

prop_compose! {
    pub(crate) fn finder()(
        layers in 2_usize..10,
        weight in MIB..12 * MIB,
        longest in 40 * MIB..200 * MIB,
        steps in 1_usize..12,
    ) -> Finder {
        Finder { layers, weight, longest, steps }
    }
}
