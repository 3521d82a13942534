//! What is to be placed.
//!
//! Invariants: every block lives for a moment at least and has a byte at least; one that begins within the
//! period lives no longer than one; the sum of all sizes stays far from what a
//! `u64` holds. Moments are ranks: only their order matters for a placement.

use std::ops::Range;

use crate::lifetimes::Lifetimes;

/// The most bytes that all blocks of an instance may have together: 1 EiB.
pub const MOST_BYTES: u64 = 1 << 60;

/// A block: it lives from `lower` on, and no longer at `upper`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first moment.
    pub lower: u64,
    /// The first moment at which it is gone. With a period this may lie in the next one.
    pub upper: u64,
    /// Its bytes.
    pub size: u64,
}

/// Why blocks are no instance. Blocks are counted from 0, in the order in which they were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is gone before it begins.
    #[error("block {0} lives from {1} to {2}; its end must be later than its begin")]
    Lifetime(usize, u64, u64),
    /// It has no bytes.
    #[error("block {0} has 0 bytes; every block needs one at least")]
    Empty(usize),
    /// More bytes than any machine has.
    #[error("the blocks up to {0} have more than {MOST_BYTES} bytes together")]
    Bytes(usize),
    /// It begins after the period, or within it and lives longer than one, or lives longer than two after it.
    #[error("block {0} lives from {1} to {2}, which does not fit a period from {3} to {4}")]
    Period(usize, u64, u64, u64, u64),
    /// More blocks than are counted here.
    #[error("{0} blocks are more than {max}", max = MOST_BLOCKS)]
    Blocks(usize),
}

/// The most blocks of an instance.
const MOST_BLOCKS: usize = 1 << 28;

/// A part of a block's lifetime that does not cross the period's end; ranks of moments, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) lower: u32,
    pub(crate) upper: u32,
    pub(crate) block: u32,
}

/// Blocks that can be placed.
#[derive(Debug)]
pub struct Instance {
    pub(crate) blocks: Vec<Block>,
    /// Moments at which something begins or ends.
    pub(crate) moments: u32,
    pub(crate) lifetimes: Lifetimes,
    bound: u64,
}

impl Instance {
    /// Blocks that live once.
    ///
    /// # Errors
    ///
    /// The first block that cannot be.
    pub fn new(blocks: Vec<Block>) -> Result<Self, Error> {
        Self::with(blocks, None)
    }

    /// Blocks of which those that begin within `period` come again after it, with the same places. A period that begins at 0
    /// is one of many: what ends after it also lives at its begin. One that begins later is the first: then only what began
    /// before lives at its begin, and the second one, which is like all others, ends the instance.
    ///
    /// # Errors
    ///
    /// The first block that cannot be.
    pub fn cyclic(blocks: Vec<Block>, period: Range<u64>) -> Result<Self, Error> {
        Self::with(blocks, Some(period))
    }

    fn with(blocks: Vec<Block>, period: Option<Range<u64>>) -> Result<Self, Error> {
        if blocks.len() > MOST_BLOCKS {
            return Err(Error::Blocks(blocks.len()));
        }
        let mut bytes = 0_u64;
        for (index, block) in blocks.iter().enumerate() {
            let &Block { lower, upper, size } = block;
            if lower >= upper {
                return Err(Error::Lifetime(index, lower, upper));
            }
            if size == 0 {
                return Err(Error::Empty(index));
            }
            bytes = bytes.saturating_add(size);
            if bytes > MOST_BYTES {
                return Err(Error::Bytes(index));
            }
            if let Some(&Range { start, end }) = period.as_ref()
                && (lower >= end
                    || lower >= start && upper - lower > end - start
                    || lower < start && upper > end + (end - start))
            {
                return Err(Error::Period(index, lower, upper, start, end));
            }
        }
        let (pieces, moments) = ranked(&blocks, period.as_ref());
        let bound = loads(&blocks, &pieces, moments).into_iter().max().unwrap_or(0);
        Ok(Self { lifetimes: Lifetimes::new(pieces, moments, blocks.len()), blocks, moments, bound })
    }

    /// The blocks, in the order in which they were given.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Of each block, the most bytes that live at a moment of its own.
    pub(crate) fn crowds(&self) -> Vec<u64> {
        let loads = loads(&self.blocks, self.lifetimes.pieces(), self.moments);
        let every = 0..u32::try_from(self.blocks.len()).expect("checked by `with`");
        every
            .map(|block| {
                let pieces = self.lifetimes.of(block);
                let own = pieces.flat_map(|it| &loads[it.lower as usize..it.upper as usize]);
                own.copied().max().unwrap_or(0)
            })
            .collect()
    }

    /// The most bytes that live at once: no placement has a lower peak.
    #[must_use]
    pub fn lower_bound(&self) -> u64 {
        self.bound
    }
}

/// Lifetimes as pieces, sorted by their begin, with ranks for moments; and how many ranks there are.
fn ranked(blocks: &[Block], period: Option<&Range<u64>>) -> (Vec<Piece>, u32) {
    let mut parts = Vec::with_capacity(blocks.len());
    for (block, &Block { lower, upper, .. }) in (0_u32..).zip(blocks) {
        match period {
            Some(&Range { start: 0, end }) if upper > end => {
                parts.push((lower, end, block));
                parts.push((0, upper - end, block));
            }
            Some(&Range { start: start @ 1.., end }) if lower >= start => {
                let length = end - start;
                parts.push((lower, upper, block));
                parts.push((lower + length, (upper + length).min(end + length), block));
            }
            _ => parts.push((lower, upper, block)),
        }
    }
    let mut moments: Vec<u64> = parts.iter().flat_map(|&(lower, upper, _)| [lower, upper]).collect();
    moments.sort_unstable();
    moments.dedup();
    let rank = |moment| u32::try_from(moments.partition_point(|&m| m < moment)).expect("at most 2^30 moments");
    let mut pieces: Vec<Piece> =
        parts.iter().map(|&(lower, upper, block)| Piece { lower: rank(lower), upper: rank(upper), block }).collect();
    pieces.sort_unstable_by_key(|piece| (piece.lower, piece.block));
    (pieces, u32::try_from(moments.len()).expect("at most 2^30 moments"))
}

/// The bytes that live at each moment.
fn loads(blocks: &[Block], pieces: &[Piece], moments: u32) -> Vec<u64> {
    let (mut begun, mut ended) = (vec![0; moments as usize], vec![0; moments as usize]);
    for piece in pieces {
        let size = blocks[piece.block as usize].size;
        begun[piece.lower as usize] += size;
        ended[piece.upper as usize] += size;
    }
    let mut live = 0_u64;
    begun
        .iter()
        .zip(&ended)
        .map(|(begun, ended)| {
            live = live + begun - ended;
            live
        })
        .collect()
}
