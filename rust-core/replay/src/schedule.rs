//! Which part of a pipeline's stage works on which micro-batch, when.
//!
//! 1F1B (Narayanan et al., SOSP 2019), and Megatron-LM's interleaved schedule (SC 2021), in which a stage has several
//! chunks of layers. Without a pipeline there is one stage.

/// A part of the stage's layers, for one micro-batch, forward or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    pub(crate) chunk: usize,
    pub(crate) micro_batch: usize,
    pub(crate) forward: bool,
}

/// A stage in a pipeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pipeline {
    pub(crate) stages: usize,
    /// Which one this is.
    pub(crate) stage: usize,
    pub(crate) chunks: usize,
    pub(crate) micro_batches: usize,
}

impl Pipeline {
    pub(crate) const fn of(stages: usize, stage: usize, chunks: usize, micro_batches: usize) -> Self {
        Self { stages, stage, chunks, micro_batches }
    }

    /// Every pass of a step, in order.
    pub(crate) fn passes(&self) -> Vec<Pass> {
        let all = self.chunks * self.micro_batches;
        let ahead = self.stages - self.stage - 1;
        let ahead = match self.chunks {
            1 => ahead,
            chunks => 2 * ahead + (chunks - 1) * self.stages,
        };
        let ahead = ahead.min(all);
        let mut passes: Vec<Pass> = (0..ahead).map(|n| self.pass(n, true)).collect();
        for n in 0..all {
            if n + ahead < all {
                passes.push(self.pass(n + ahead, true));
            }
            passes.push(self.pass(n, false));
        }
        passes
    }

    /// The n-th pass in one direction: each chunk takes as many micro-batches as there are stages, in turn.
    fn pass(&self, n: usize, forward: bool) -> Pass {
        let round = self.stages * self.chunks;
        let chunk = n % round / self.stages;
        Pass {
            chunk: match forward {
                true => chunk,
                false => self.chunks - 1 - chunk,
            },
            micro_batch: n / round * self.stages + n % self.stages,
            forward,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipeline(stages: usize, stage: usize, chunks: usize, micro_batches: usize) -> Vec<Pass> {
        Pipeline::of(stages, stage, chunks, micro_batches).passes()
    }

    #[test]
    fn each_goes_forward_once_and_back_once_and_as_many_are_live_as_the_papers_say() {
        let live = |passes: Vec<Pass>| {
            let mut live = 0_usize;
            let counts = passes.into_iter().map(|it| {
                live = if it.forward { live + 1 } else { live - 1 };
                live
            });
            counts.max().unwrap_or(0)
        };
        assert_eq!(live(pipeline(4, 0, 1, 16)), 4);
        assert_eq!(live(pipeline(4, 3, 1, 16)), 1);
        assert_eq!(live(pipeline(4, 0, 2, 16)), 11);
        assert_eq!(live(pipeline(1, 0, 1, 3)), 1);
        let passes = pipeline(4, 1, 2, 8);
        for (at, pass) in passes.iter().enumerate().filter(|it| !it.1.forward) {
            let is_forward =
                |it: &&Pass| (it.chunk, it.micro_batch, it.forward) == (pass.chunk, pass.micro_batch, true);
            assert_eq!(passes[..at].iter().filter(is_forward).count(), 1);
        }
        assert_eq!(passes.len(), 2 * 2 * 8);
    }
}
