//! What a rank does with weights, gradients and states; and an evaluation, which needs none of them.

use super::{Rank, States};
use crate::device::training::shapes::Op;
use crate::device::training::tape::{Block, MAIN, SIDE};

impl Rank {
    /// Weights of a layer come from their ranks.
    pub(super) fn gather(&mut self) -> Option<Block> {
        matches!(self.what.states, States::Weights { .. }).then(|| {
            let elements: u64 = self.what.weights().sum();
            self.tape.alloc_on(SIDE, elements * 2)
        })
    }

    pub(super) fn let_go(&mut self, gathered: Option<Block>) {
        if let Some(block) = gathered {
            self.tape.free_used_on(MAIN, block);
        }
    }

    /// The gradients of a layer go to their ranks.
    pub(super) fn scatter(&mut self) {
        let (States::Gradients { ranks } | States::Weights { ranks }) = self.what.states else {
            return;
        };
        let elements: u64 = self.what.weights().sum();
        let bucket = self.tape.alloc(elements * 2);
        let gone = std::mem::take(&mut self.gradients);
        self.tape.free_all(gone);
        let part = self.tape.alloc(elements * 2 / ranks);
        self.tape.free_used_on(SIDE, bucket);
        self.tape.free_used_on(SIDE, part);
    }

    pub(super) fn weights_gradient(&mut self, op: Op, is_first: bool) {
        if op.weights == 0 || matches!(self.what.states, States::OneBuffer { .. }) {
            return;
        }
        let block = self.tape.alloc(op.weights * 2);
        if is_first || self.what.states != States::PerWeight {
            self.gradients.push(block);
        } else {
            self.tape.free(block); // added to the first one's
        }
    }

    pub(super) fn optimize(&mut self, first: bool) {
        let all = self.what.all_weights();
        let sum: u64 = all.iter().sum();
        match self.what.states {
            States::PerWeight => {
                if first {
                    for elements in all.iter().flat_map(|it| [it, it]) {
                        self.keep(elements * 4);
                    }
                }
                let roots: Vec<Block> = all.iter().map(|it| self.tape.alloc(it * 4)).collect();
                self.tape.free_all(roots);
                self.has_gradients.fill(false);
                let gone = std::mem::take(&mut self.gradients);
                self.tape.free_all(gone);
            }
            States::OneBuffer { ranks } | States::Gradients { ranks } | States::Weights { ranks } => {
                let part = sum.div_ceil(ranks) * 4;
                if first {
                    (0..3).for_each(|_| self.keep(part));
                }
                // What the ranks get of the new weights, one after the other.
                if ranks > 1 {
                    let parts = all.iter().map(|it| it * 2);
                    for bytes in parts {
                        let whole = self.tape.alloc(bytes);
                        self.tape.free(whole);
                    }
                }
            }
        }
    }

    /// Forward passes of half as many micro-batches, of which nothing is kept.
    pub(super) fn evaluate(&mut self) {
        let ops = self.what.ops(self.batch);
        for _ in 0..self.what.pipeline.micro_batches.div_ceil(2) {
            let mut input = self.receive();
            for _ in 0..self.what.layers {
                let mut gone: Option<Block> = None;
                for op in &ops {
                    let next = self.tape.alloc(op.out);
                    self.tape.free_all(gone.replace(next));
                }
                if let Some(out) = gone {
                    let before = std::mem::replace(&mut input, out);
                    self.tape.free(before);
                }
            }
            self.tape.free(input);
        }
    }
}
