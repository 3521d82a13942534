//! Feeds what a program does to a model and measures the outcome.
//!
//! Counts what programs asked for, which models do not. The bound is what no allocator goes below: the most that was in
//! use at one moment, blocks that streams were not done with among them, each rounded up to 512 bytes.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Act, Device};

/// What sizes are rounded up to.
const UNIT: u64 = 512;

/// One act on a model.
pub fn apply(model: &mut dyn Device, act: Act) {
    match act {
        Act::Alloc { block, bytes, stream } => model.allocate(block, bytes, stream),
        Act::Use { block, stream } => model.use_on(block, stream),
        Act::Free { block } => model.free(block),
        Act::Complete { block } => model.complete(block),
        Act::Clear => model.clear(),
        Act::Iter => {}
    }
}

/// The outcome of a replay. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Requests served.
    pub allocations: u64,
    /// Requests refused: none, since the models' device is never full.
    pub refused: u64,
    /// The most that was requested and not freed at one moment.
    pub peak_requested: u64,
    /// The most that was in use, see the module's documentation.
    pub bound: u64,
    /// The most that was reserved.
    pub peak_reserved: u64,
    /// Reserved at the end.
    pub reserved_at_end: u64,
    /// `peak_requested` over `peak_reserved`; absent where nothing was reserved.
    pub efficiency: Option<f64>,
    /// Segments, or pages of expandable ones, that the driver was asked for.
    pub taken: u64,
    /// The same after the first step.
    pub taken_after_first_step: u64,
}

/// A replay in progress.
#[derive(Debug)]
pub struct Replay<D> {
    model: D,
    requests: Requests,
    allocations: u64,
    first_step: Option<u64>,
}

/// What a program holds.
#[derive(Debug, Default)]
struct Requests {
    blocks: Vec<Request>,
    /// Freed blocks that other streams are not done with.
    pending: BTreeSet<u32>,
    requested: u64,
    in_use: u64,
    peak_requested: u64,
    bound: u64,
}

/// A request that was served.
#[derive(Clone, Copy, Debug, Default)]
struct Request {
    bytes: u64,
    stream: u32,
    shared: bool,
}

impl Requests {
    fn alloc(&mut self, block: u32, bytes: u64, stream: u32) {
        let shared = false;
        *super::place(&mut self.blocks, block) = Request { bytes, stream, shared };
        self.requested += bytes;
        self.in_use += bytes.next_multiple_of(UNIT);
        self.peak_requested = self.peak_requested.max(self.requested);
        self.bound = self.bound.max(self.in_use);
    }

    fn of(&mut self, block: u32) -> &mut Request {
        super::place(&mut self.blocks, block)
    }

    fn free(&mut self, block: u32) {
        let Request { bytes, shared, .. } = *self.of(block);
        self.requested -= bytes;
        self.pending.insert(block);
        if !shared {
            self.complete(block);
        }
    }

    fn complete(&mut self, block: u32) {
        if self.pending.remove(&block) {
            self.in_use -= self.of(block).bytes.next_multiple_of(UNIT);
        }
    }

    fn clear(&mut self) {
        for block in std::mem::take(&mut self.pending) {
            self.in_use -= self.of(block).bytes.next_multiple_of(UNIT);
        }
    }
}

impl<D: Device> Replay<D> {
    /// A replay at its beginning.
    pub fn new(model: D) -> Self {
        Self { model, requests: Requests::default(), allocations: 0, first_step: None }
    }

    /// The model.
    pub fn model(&self) -> &D {
        &self.model
    }

    /// Replays one act.
    pub fn step(&mut self, act: Act) {
        match act {
            Act::Alloc { block, bytes, stream } => {
                self.allocations += 1;
                self.requests.alloc(block, bytes, stream);
            }
            Act::Use { block, stream } => {
                let request = self.requests.of(block);
                request.shared |= request.stream != stream;
            }
            Act::Free { block } => self.requests.free(block),
            Act::Complete { block } => self.requests.complete(block),
            Act::Clear => self.requests.clear(),
            Act::Iter => {
                let taken = self.model.usage().taken;
                self.first_step.get_or_insert(taken);
            }
        }
        apply(&mut self.model, act);
    }

    /// The outcome of all acts so far.
    pub fn outcome(&self) -> Outcome {
        let usage = self.model.usage();
        let Requests { peak_requested, bound, .. } = self.requests;
        let reserved = usage.peak_reserved;
        Outcome {
            allocations: self.allocations,
            refused: 0,
            peak_requested,
            bound,
            peak_reserved: reserved,
            reserved_at_end: usage.reserved,
            efficiency: (reserved > 0).then(|| peak_requested as f64 / reserved as f64),
            taken: usage.taken,
            taken_after_first_step: self.first_step.map_or(0, |first| usage.taken - first),
        }
    }
}
