//! A rank that trains: what it asks for in which order.
//!
//! Parameters first, then steps: passes forward and back in the pipeline's order, then the optimizer, which makes its
//! state in the first step. Knows sizes and lifetimes only; nothing is computed.

mod weights;

use super::shapes::{Batch, Op, Shape, head, layer};
use super::tape::{Block, MAIN, Tape};
use crate::device::Act;
use crate::schedule::{Pass, Pipeline};

/// How gradients and states are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum States {
    /// As PyTorch does by itself: a gradient for each weight, freed after the step; AdamW takes all weights at once.
    PerWeight,
    /// Gradients are added up in one float32 buffer; the fused optimizer has its part of the states.
    OneBuffer { ranks: u64 },
    /// ZeRO-2: gradients go to their ranks layer by layer, on the other stream.
    Gradients { ranks: u64 },
    /// ZeRO-3: weights come from their ranks besides, one layer ahead.
    Weights { ranks: u64 },
}

/// A training, as one rank sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) shape: Shape,
    pub(super) batch: Batch,
    /// Layers of this stage.
    pub(super) layers: usize,
    /// Ranks that share each layer.
    pub(super) tensor: u64,
    pub(super) pipeline: Pipeline,
    pub(super) recompute: bool,
    pub(super) states: States,
    /// By how much routed sizes differ from balanced ones, in percent.
    pub(super) jitter: u64,
}

/// What a run does that others do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Differs {
    /// How many in a thousand requests ask for something else.
    pub changed: u32,
    /// Before the last step but one, a phase of forward passes alone.
    pub evaluates: bool,
    /// One step's sequences are so many percent of the others' length; 0: none.
    pub length: u64,
}

/// What an operation made.
#[derive(Debug)]
struct Made {
    op: Op,
    out: Option<Block>,
    /// Bytes of `out`, also once it is freed.
    bytes: u64,
    beside: Option<Block>,
}

/// A layer's or a chunk's way forward.
type Layer = Vec<Made>;

/// A pass that went forward and not back: the layers' inputs if they are computed again, else all that was made.
#[derive(Debug, Default)]
struct Forward {
    received: Option<Block>,
    inputs: Vec<Block>,
    layers: Vec<Layer>,
}

/// The state of a rank.
#[derive(Debug)]
struct Rank {
    what: Program,
    tape: Tape,
    /// Of this step.
    batch: Batch,
    kept: Vec<Block>,
    gradients: Vec<Block>,
    /// Chunks whose weights have gradients.
    has_gradients: Vec<bool>,
}

impl Program {
    /// What it does in so many steps.
    pub(super) fn acts(self, seed: u64, steps: u32, differs: Differs) -> Vec<Act> {
        let mut rank = Rank {
            tape: Tape::new(seed, differs.changed),
            batch: self.batch,
            kept: Vec::new(),
            gradients: Vec::new(),
            has_gradients: vec![false; self.pipeline.chunks],
            what: self,
        };
        rank.begin();
        for step in 0..steps {
            let odd = step + 2 == steps;
            if odd && differs.length > 0 {
                rank.batch.length = self.batch.length * differs.length / 100;
            }
            if odd && differs.evaluates {
                rank.evaluate();
            }
            rank.step(step == 0);
            rank.batch = self.batch;
            rank.tape.step();
        }
        rank.tape.acts()
    }

    fn layers_of_a_chunk(&self) -> usize {
        self.layers / self.pipeline.chunks
    }

    fn ops(&self, batch: Batch) -> Vec<Op> {
        layer(self.shape, batch, self.tensor)
    }

    /// Elements of the weights of one layer, tensor by tensor.
    fn weights(&self) -> impl Iterator<Item = u64> {
        let ops = self.ops(self.batch).into_iter();
        ops.map(|it| it.weights).filter(|it| *it > 0)
    }

    fn has_head(&self) -> bool {
        self.pipeline.stage + 1 == self.pipeline.stages
    }

    fn words(&self) -> u64 {
        self.shape.vocabulary / self.tensor * self.shape.hidden
    }

    /// Elements of all weights, tensor by tensor.
    fn all_weights(&self) -> Vec<u64> {
        let mut all = Vec::new();
        if self.pipeline.stage == 0 {
            all.push(self.words());
        }
        (0..self.layers).for_each(|_| all.extend(self.weights()));
        if self.has_head() {
            all.push(self.words());
        }
        all
    }
}

impl Rank {
    /// Weights, and buffers that are made before the first step.
    fn begin(&mut self) {
        let all = self.what.all_weights();
        let sum: u64 = all.iter().sum();
        let part = match self.what.states {
            States::Weights { ranks } => ranks,
            _ => 1,
        };
        for elements in all {
            self.keep(elements * 2 / part);
        }
        match self.what.states {
            States::PerWeight => {}
            States::OneBuffer { .. } => self.keep(sum * 4),
            States::Gradients { ranks } | States::Weights { ranks } => self.keep(sum * 4 / ranks),
        }
    }

    fn keep(&mut self, bytes: u64) {
        let block = self.tape.alloc_as_ever(MAIN, bytes.max(1));
        self.kept.push(block);
    }

    fn wide(&self) -> u64 {
        self.batch.sequences * self.batch.length * self.what.shape.hidden * 2
    }

    fn step(&mut self, first: bool) {
        let passes = self.what.pipeline.passes();
        let mut open: Vec<(usize, usize, Forward)> = Vec::new();
        for Pass { chunk, micro_batch, forward } in passes {
            if forward {
                let made = self.forward(chunk);
                open.push((chunk, micro_batch, made));
                continue;
            }
            let is_its = |it: &(usize, usize, Forward)| (it.0, it.1) == (chunk, micro_batch);
            if let Some(at) = open.iter().position(is_its) {
                let (.., made) = open.remove(at);
                self.backward(chunk, made);
            }
        }
        self.optimize(first);
    }

    fn forward(&mut self, chunk: usize) -> Forward {
        let mut all = Forward { received: Some(self.receive()), ..Forward::default() };
        let ops = self.what.ops(self.batch);
        let mut gathered = self.gather();
        for number in 0..self.what.layers_of_a_chunk() {
            let is_last = number + 1 == self.what.layers_of_a_chunk();
            let ahead = if is_last { None } else { self.gather() };
            let mut made = self.through(&ops);
            if self.what.recompute {
                // The last one's output is the next layer's input.
                let last = made.last_mut().and_then(|it| it.out.take());
                self.forget(made);
                all.inputs.extend(last);
            } else {
                all.layers.push(made);
            }
            let done = std::mem::replace(&mut gathered, ahead);
            self.let_go(done);
        }
        if self.what.has_head() && chunk + 1 == self.what.pipeline.chunks {
            let made = self.through(&head(self.what.shape, self.batch, self.what.tensor));
            all.layers.push(made);
        }
        all
    }

    /// Another stage's output, or the words' vectors.
    fn receive(&mut self) -> Block {
        let bytes = self.wide();
        self.tape.alloc(bytes)
    }

    /// The operations of a layer, one after the other.
    fn through(&mut self, ops: &[Op]) -> Layer {
        let mut layer: Layer = Vec::with_capacity(ops.len());
        let jitter = self.what.jitter as f64 / 100.0;
        let share = self.tape.random.between(1.0 - jitter, 1.0 + jitter);
        for &op in ops {
            let bytes = match op.routed {
                true => (op.out as f64 * share) as u64,
                false => op.out,
            };
            let out = Some(self.tape.alloc(bytes));
            let beside = (op.beside > 0).then(|| self.tape.alloc(op.beside));
            if let Some(before) = layer.last_mut().filter(|it| !it.op.kept) {
                let gone = before.out.take();
                self.tape.free_all(gone);
            }
            layer.push(Made { op, out, bytes, beside });
        }
        layer
    }

    fn forget(&mut self, layer: Layer) {
        for made in layer {
            self.tape.free_all(made.out.into_iter().chain(made.beside));
        }
    }

    fn backward(&mut self, chunk: usize, mut all: Forward) {
        let is_first = !std::mem::replace(&mut self.has_gradients[chunk], true);
        let mut gradient = self.receive();
        if self.what.has_head() && chunk + 1 == self.what.pipeline.chunks {
            let made = all.layers.pop().unwrap_or_default();
            gradient = self.back(made, gradient, is_first);
        }
        let ops = self.what.ops(self.batch);
        let mut gathered = self.gather();
        for number in (0..self.what.layers_of_a_chunk()).rev() {
            let ahead = if number == 0 { None } else { self.gather() };
            let made = if self.what.recompute {
                let out = all.inputs.pop();
                self.tape.free_all(out);
                self.through(&ops)
            } else {
                all.layers.pop().unwrap_or_default()
            };
            gradient = self.back(made, gradient, is_first);
            let done = std::mem::replace(&mut gathered, ahead);
            self.let_go(done);
            self.scatter();
        }
        self.tape.free(gradient);
        self.tape.free_all(all.received);
    }

    /// A layer's way back: the gradient of its output in, that of its input out.
    fn back(&mut self, layer: Layer, gradient: Block, is_first: bool) -> Block {
        let wide = self.wide();
        let outputs = layer.iter().map(|it| it.bytes);
        let inputs: Vec<u64> = std::iter::once(wide).chain(outputs).collect();
        let mut gradient = gradient;
        // What goes on beside a branch.
        let mut aside: Option<Block> = None;
        for (made, bytes) in layer.into_iter().zip(inputs).rev() {
            let Made { op, out, beside, .. } = made;
            let scratch = (op.scratch > 0).then(|| self.tape.alloc(op.scratch));
            if op.adds {
                // The branch reads the same gradient.
                aside = Some(std::mem::replace(&mut gradient, self.tape.alloc(512)));
            } else {
                let next = self.tape.alloc(bytes);
                self.weights_gradient(op, is_first);
                let gone = std::mem::replace(&mut gradient, next);
                self.tape.free(gone);
            }
            let gone = scratch.into_iter().chain(out).chain(beside);
            self.tape.free_all(gone);
            if let Some(aside) = aside.take_if(|_| op.branches) {
                let sum = self.tape.alloc(wide);
                let gone = std::mem::replace(&mut gradient, sum);
                self.tape.free(gone);
                self.tape.free(aside);
            }
        }
        gradient
    }
}
