//! What a replay does at a time: an event of pinned memory, in 24 bytes, since a report keeps ten million of them.

use pinbuddy_events::trace::Error;
use pinbuddy_events::{Checker, Event, Item, Op};

/// A step of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its time, in microseconds.
    pub at: u64,
    /// What the program did.
    pub act: Act,
}

/// What a replay does. A block has its number until it is freed; then another block may get it. Numbers are below the most
/// blocks that were ever live at once. A stream's number never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A request.
    Alloc {
        /// The block.
        block: u32,
        /// The request in bytes.
        bytes: u64,
    },
    /// A free, or the end of a block that was pending.
    Free {
        /// The block.
        block: u32,
    },
    /// A use on a stream.
    Use {
        /// The block.
        block: u32,
        /// The stream.
        stream: u32,
    },
    /// `empty_cache`.
    Clear,
    /// The end of an iteration.
    Iter,
}

impl Step {
    /// The step of an event; none if a replay does nothing then.
    pub fn of(item: &Item) -> Option<Self> {
        let act = match item.event.op {
            Op::Request { bytes, .. } => Act::Alloc { block: item.block?, bytes },
            Op::Free { .. } | Op::Safe { .. } => Act::Free { block: item.block? },
            Op::Use { stream, .. } => Act::Use { block: item.block?, stream },
            Op::Clear => Act::Clear,
            Op::Iteration => Act::Iter,
            Op::Wait { .. } | Op::SegmentAlloc { .. } | Op::SegmentFree { .. } | Op::Node { .. } | Op::Lost { .. } => {
                return None;
            }
        };
        Some(Self { at: item.at(), act })
    }

    /// The step of the event on this line.
    ///
    /// # Errors
    ///
    /// Those of the checker.
    pub fn checked(checker: &mut Checker, line: u64, event: Event) -> Result<Option<Self>, Error> {
        Ok(checker.check(line, event)?.as_ref().and_then(Self::of))
    }
}
