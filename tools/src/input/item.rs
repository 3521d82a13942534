//! What happened in a run, event by event, whichever kind of file says so.

/// An event, with where it stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The line of a trace, the number of an event in a snapshot; from 1 on.
    pub line: u64,
    /// When, in microseconds.
    pub at: u64,
    /// What happened.
    pub what: What,
}

/// What happened. Each block has an id that no other block ever has, and a small number for replays, which another block
/// may get once it is freed. Its bytes are as they were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A request was served.
    Request {
        /// The block: how many requests there were before.
        id: u64,
        /// Its number.
        block: u32,
        /// Its bytes.
        bytes: u64,
        /// Who asked.
        thread: u32,
        /// No engine serves it, whatever is set: so plans leave it out.
        private: bool,
        /// The stream that it was asked for, as a small number; of device memory only.
        stream: u32,
    },
    /// The block was freed.
    Free {
        /// The block.
        id: u64,
        /// Its number, if a replay frees it now.
        block: Option<u32>,
        /// Its bytes.
        bytes: u64,
        /// It may not be used again before `Safe`. Else it may from now on, or once its streams are done, where the file
        /// does not say when that was.
        pending: bool,
    },
    /// A block that was pending may be used again.
    Safe {
        /// The block.
        id: u64,
        /// Its number, if a replay frees it now.
        block: Option<u32>,
        /// Its bytes.
        bytes: u64,
    },
    /// The block was used on a stream.
    Use {
        /// The block.
        id: u64,
        /// Its number, if a replay has to find out when the stream is done.
        block: Option<u32>,
        /// Its bytes.
        bytes: u64,
        /// The stream.
        stream: u32,
    },
    /// The allocator of the run itself pinned memory.
    Pin {
        /// Bytes.
        bytes: u64,
    },
    /// The allocator of the run itself unpinned memory.
    Unpin {
        /// Bytes.
        bytes: u64,
    },
    /// A thread of the run itself waited for the driver until now.
    Wait {
        /// The block whose request waited; of memory that was given back, none.
        id: Option<u64>,
        /// How long, in microseconds; not longer than the time of the event.
        took: u64,
        /// Who waited.
        thread: u32,
    },
    /// `empty_cache`.
    Clear,
    /// An iteration is over.
    Iteration,
    /// So many events were dropped while they were recorded.
    Lost {
        /// How many.
        events: u64,
    },
}

impl What {
    /// The bytes of the block that it is about.
    pub(crate) fn bytes(&self) -> Option<u64> {
        match *self {
            Self::Request { bytes, .. }
            | Self::Free { bytes, .. }
            | Self::Safe { bytes, .. }
            | Self::Use { bytes, .. } => Some(bytes),
            _ => None,
        }
    }
}
