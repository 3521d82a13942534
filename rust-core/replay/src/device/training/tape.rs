//! What the generator writes a program with: blocks of streams, and what other streams do with them.
//!
//! Numbers of blocks are used again. Another stream is done with a block so many acts after it was freed, since the
//! program runs ahead of the device. Knows no model. Invariant: every block that was asked for was freed at the end,
//! but for those that are kept.

use std::collections::VecDeque;

use crate::device::Act;
use crate::workload::Random;

/// The stream that computes, and the one that communicates.
pub(super) const MAIN: u32 = 0;
pub(super) const SIDE: u32 = 1;

/// After so many acts another stream is done with a block.
const LAG: usize = 24;

/// A block of the program.
#[derive(Debug)]
#[must_use = "a block that is forgotten lives to the end"]
pub(super) struct Block(u32);

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Tape {
    acts: Vec<Act>,
    vacant: Vec<u32>,
    numbers: u32,
    /// Freed blocks that a stream is not done with: until how many acts, and which.
    pending: VecDeque<(usize, u32)>,
    pub(super) random: Random,
    /// How many in a thousand requests ask for something else.
    changed: u32,
}

impl Tape {
    pub(super) fn new(seed: u64, changed: u32) -> Self {
        Self {
            acts: Vec::new(),
            vacant: Vec::new(),
            numbers: 0,
            pending: VecDeque::new(),
            random: Random::new(seed),
            changed,
        }
    }

    pub(super) fn alloc(&mut self, bytes: u64) -> Block {
        self.alloc_on(MAIN, bytes)
    }

    pub(super) fn alloc_on(&mut self, stream: u32, bytes: u64) -> Block {
        let changed = self.random.below(1000) < self.changed as usize;
        let scale = match changed {
            true => self.random.between(0.5, 1.5),
            false => 1.0,
        };
        self.alloc_as_ever(stream, (bytes as f64 * scale) as u64)
    }

    /// What does not change, in whatever run.
    pub(super) fn alloc_as_ever(&mut self, stream: u32, bytes: u64) -> Block {
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.numbers += 1;
            self.numbers - 1
        });
        self.put(Act::Alloc { block: number, bytes, stream });
        Block(number)
    }

    pub(super) fn free(&mut self, block: Block) {
        let block = block.0;
        self.put(Act::Free { block });
        self.vacant.push(block);
    }

    pub(super) fn free_all(&mut self, blocks: impl IntoIterator<Item = Block>) {
        blocks.into_iter().for_each(|block| self.free(block));
    }

    /// Frees a block that was also used on a stream that is not its own.
    pub(super) fn free_used_on(&mut self, stream: u32, block: Block) {
        let block = block.0;
        self.put(Act::Use { block, stream });
        self.put(Act::Free { block });
        self.pending.push_back((self.acts.len() + LAG, block));
    }

    /// A step is over; all streams are waited for.
    pub(super) fn step(&mut self) {
        self.settle(usize::MAX);
        self.acts.push(Act::Iter);
    }

    pub(super) fn acts(self) -> Vec<Act> {
        self.acts
    }

    fn put(&mut self, act: Act) {
        self.settle(self.acts.len());
        self.acts.push(act);
    }

    fn settle(&mut self, now: usize) {
        while let Some(&(_, block)) = self.pending.front().filter(|it| it.0 <= now) {
            self.pending.pop_front();
            self.acts.push(Act::Complete { block });
            self.vacant.push(block);
        }
    }
}
