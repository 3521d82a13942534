//! PyTorch's allocator of device memory (`c10::cuda::CUDACachingAllocator`, 2.15), as a model.
//!
//! ```text
//!   blocks    parts of segments, their neighbours, and what is free in each pool: bookkeeping
//!   torch     the allocator: rounding, best fit, splitting, merging, what is given back and when
//!   ranges    expandable segments: a range of addresses for each stream and pool, mapped page by page
//!   planned   a plan in front of the allocator, as in a run
//!   replay    feeds events to a model and measures
//! ```
//!
//! Memory belongs to the stream that it was asked for, and the driver, which always has more, is asked for whole
//! segments. What streams do takes no time here: whoever feeds a model says when a block's events are complete. Knows
//! neither files nor how plans are made: the planner tries its plans here.
//!
//! Not modelled: a full device; and what does nothing by default, which is pools of graphs and of users, garbage
//! collection, `max_split_size_mb`, `roundup_power2_divisions`, and fractions of a device.

#![forbid(unsafe_code)]

mod blocks;
pub mod planned;
mod ranges;
pub mod replay;
mod torch;

pub use torch::{SHARED, Torch};

use std::fmt::Debug;

/// A mebibyte, in bytes.
const MIB: u64 = 1 << 20;

/// Requests from so many bytes on get what is idle in a plan's regions, where they have no place of their own. PyTorch serves those of
/// up to 1 MiB from segments of 2 MiB, in which shorter ones waste little, and a short block that lives for long would keep a
/// large one from its place.
pub const LENT_FROM: u64 = 1 << 18;

/// What a run with a plan may reserve more than `without`: a segment of PyTorch's or three percent, whichever is more.
#[must_use]
pub const fn allowance(without: u64) -> u64 {
    const PERCENT: u64 = 3;
    let lost = without / 100 * PERCENT;
    if lost > SHARED { lost } else { SHARED }
}

/// What a program does with device memory. A block's number may be used again once it is freed and complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It asks for `bytes` bytes, 1 or more, on a stream.
    Alloc {
        /// The block's number.
        block: u32,
        /// Bytes.
        bytes: u64,
        /// The stream that may use it without further ado.
        stream: u32,
    },
    /// It uses a block on another stream (`record_stream`).
    Use {
        /// The block.
        block: u32,
        /// The stream.
        stream: u32,
    },
    /// It frees a block. If other streams used it, it is free once they are done.
    Free {
        /// The block.
        block: u32,
    },
    /// What other streams did with a freed block is done.
    Complete {
        /// The block.
        block: u32,
    },
    /// `empty_cache`, which waits for all streams.
    Clear,
    /// A step is over.
    Iter,
}

/// What an allocator holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes that the driver gave.
    pub reserved: u64,
    /// The most at one moment.
    pub peak_reserved: u64,
    /// Bytes of blocks that programs have, rounded up.
    pub allocated: u64,
    /// Bytes of these and of freed blocks whose events are not complete.
    pub active: u64,
    /// Segments, or pages of expandable ones, that the driver was asked for.
    pub taken: u64,
    /// Those that were given back.
    pub given_back: u64,
}

/// An allocator of device memory.
pub trait Device: Debug {
    /// A request of `bytes` bytes, 1 or more; the block is called `block` until it is freed and complete.
    fn allocate(&mut self, block: u32, bytes: u64, stream: u32);

    /// The block is used on a stream.
    fn use_on(&mut self, block: u32, stream: u32);

    /// The block is freed. If another stream used it, [`Self::complete`] is to follow.
    fn free(&mut self, block: u32);

    /// The events of a freed block are complete. Does nothing if the allocator has waited for them itself.
    fn complete(&mut self, block: u32);

    /// `empty_cache`.
    fn clear(&mut self);

    /// What it holds.
    fn usage(&self) -> Usage;

    /// Checks that the model's state is consistent: for tests, and slow.
    ///
    /// # Errors
    ///
    /// What is inconsistent.
    fn audit(&self) -> Result<(), String>;
}

/// Which model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As it comes.
    Torch,
    /// With `expandable_segments:True`.
    TorchExpandable,
}

impl Kind {
    /// All of them, in the order in which they are compared.
    pub const ALL: [Self; 2] = [Self::Torch, Self::TorchExpandable];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Torch => "torch-device",
            Self::TorchExpandable => "torch-device-expandable",
        }
    }

    /// The model, with nothing reserved.
    pub fn model(self) -> Torch {
        Torch::new(self == Self::TorchExpandable)
    }
}

/// A vector's place for a block; the vector grows as needed.
#[inline]
fn place<T: Default>(places: &mut Vec<T>, block: u32) -> &mut T {
    let index = block as usize;
    if index >= places.len() {
        places.resize_with(index + 1, T::default);
    }
    &mut places[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_or_three_percent_may_be_lost() {
        assert_eq!([0, 600 * MIB, 1000 * MIB].map(allowance), [20 * MIB, 20 * MIB, 1000 * MIB / 100 * 3]);
    }
}
