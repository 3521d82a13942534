//! Whether offsets are a placement, found out by a sweep through time.
//!
//! Shares nothing with what places: lifetimes are taken as they were given.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::Block;

/// Two blocks that live at the same time in the same bytes, or an offset too many or too few.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Overlap {
    /// Counted from 0, in the order in which they were given.
    #[error("blocks {0} and {1} overlap at moment {2}")]
    Blocks(usize, usize, u64),
    /// One offset for each block is wanted.
    #[error("{1} offsets for {0} blocks")]
    Count(usize, usize),
    /// An end beyond what a `u64` holds.
    #[error("block {0} ends beyond 2^64")]
    Beyond(usize),
}

/// The peak of a placement: the highest end. What begins within a `period` comes again: of many, if it begins at 0, so that what
/// lives beyond its end also lives at its begin; else of two, the first of which nothing like it comes before.
///
/// # Errors
///
/// The first two blocks, in time, that overlap.
pub fn check(blocks: &[Block], period: Option<Range<u64>>, offsets: &[u64]) -> Result<u64, Overlap> {
    if blocks.len() != offsets.len() {
        return Err(Overlap::Count(blocks.len(), offsets.len()));
    }
    let mut peak = 0;
    // Ends come before begins at the same moment.
    let mut events = Vec::with_capacity(blocks.len() * 2);
    for (index, (block, &offset)) in blocks.iter().zip(offsets).enumerate() {
        let end = offset.checked_add(block.size).ok_or(Overlap::Beyond(index))?;
        peak = peak.max(end);
        let mut lives = |from, to| {
            events.push((from, true, index));
            events.push((to, false, index));
        };
        match &period {
            Some(period) if period.start == 0 && block.upper > period.end => {
                lives(block.lower, period.end);
                lives(0, block.upper - period.end);
            }
            Some(period) if period.start > 0 && block.lower >= period.start => {
                let length = period.end - period.start;
                lives(block.lower, block.upper);
                lives(block.lower + length, (block.upper + length).min(period.end + length));
            }
            _ => lives(block.lower, block.upper),
        }
    }
    events.sort_unstable();

    let mut living: BTreeMap<u64, usize> = BTreeMap::new();
    for (moment, begins, index) in events {
        let offset = offsets[index];
        if !begins {
            living.remove(&offset);
            continue;
        }
        let end = offset + blocks[index].size;
        if let Some((_, &other)) = living.range(..end).next_back()
            && offsets[other] + blocks[other].size > offset
        {
            return Err(Overlap::Blocks(other, index, moment));
        }
        living.insert(offset, index);
    }
    Ok(peak)
}
