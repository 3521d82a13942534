//! One event: a moment, whose memory, and what was done with it.

/// The largest request that an event may have, in bytes: 1 TiB, the largest that the engine serves.
pub const MOST_BYTES: u64 = 1 << 40;

/// The latest moment of an event, in nanoseconds: some 35 years.
pub const LATEST: u64 = 1000 << 50;

/// Nanoseconds in a microsecond, the unit of replays and reports.
pub const MICROSECOND: u64 = 1000;

/// Whose memory an event is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Whose {
    /// Pinned memory; also of events that are about no memory, such as the end of an iteration.
    #[default]
    Host,
    /// Memory of the device of this number.
    Device(u32),
}

/// Something that a program did, or that was done for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds from any start on.
    pub at: u64,
    /// Whose memory. Of a block that was named before, a trace does not repeat it: a [`Checker`](crate::Checker) knows.
    pub whose: Whose,
    /// What happened.
    pub op: Op,
}

/// What happened. A block has an id, which names no other block until it is free again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A request was served.
    Request {
        /// The block's name.
        id: u64,
        /// The request in bytes, `1..=`[`MOST_BYTES`], as it was asked for.
        bytes: u64,
        /// The thread that asked.
        thread: u32,
        /// Of device memory: the stream that it was asked for, as a number of the device's. Of pinned memory 0.
        stream: u32,
        /// PyTorch's own allocator serves it, whatever is set: it is of a private pool, of a capture, larger than PyTorch
        /// was told to keep, or asked for a stream that is not the current one.
        private: bool,
    },
    /// A block was freed.
    Free {
        /// The block.
        id: u64,
        /// The thread that freed it.
        thread: u32,
        /// The work of streams on it is outstanding: `Safe` follows once that is done, if it is ever known. A trace does
        /// not have it: a [`Checker`](crate::Checker) knows.
        pending: bool,
    },
    /// A block was used on a stream, whose work so far must be done before the block is handed out again.
    Use {
        /// The block.
        id: u64,
        /// The stream.
        stream: u32,
    },
    /// The work of streams on a freed block was seen done.
    Safe {
        /// The block.
        id: u64,
    },
    /// A thread waited for the driver until now.
    Wait {
        /// The block whose request waited; none where memory was given back, as while the cache is emptied.
        id: Option<u64>,
        /// Nanoseconds; not longer than the time of the event.
        took: u64,
        /// The thread.
        thread: u32,
    },
    /// The allocator got memory from the driver.
    SegmentAlloc {
        /// Its bytes.
        bytes: u64,
    },
    /// The allocator gave memory back to the driver.
    SegmentFree {
        /// Its bytes.
        bytes: u64,
    },
    /// From now on so much pinned memory serves the devices of a NUMA node. A recorder says it where a machine has several,
    /// some times a second.
    Node {
        /// The node's number, below 1024.
        node: u32,
        /// Bytes. A sum, so it may be more than [`MOST_BYTES`]; at most 2^56.
        pinned: u64,
        /// Of those in use, or waiting for a stream, or free in a thread's cache; no more than `pinned`.
        used: u64,
    },
    /// Events were dropped, since they came faster than they could be written.
    Lost {
        /// Their number, at least 1.
        events: u64,
    },
    /// The program emptied the cache.
    Clear,
    /// An iteration is over.
    Iteration,
}

impl Event {
    /// An event of pinned memory, or of none.
    pub const fn host(at: u64, op: Op) -> Self {
        let whose = Whose::Host;
        Self { at, whose, op }
    }
}

impl Op {
    /// A request of thread 0, for stream 0.
    pub const fn request(id: u64, bytes: u64) -> Self {
        Self::Request { id, bytes, thread: 0, stream: 0, private: false }
    }

    /// A free by thread 0 of a block that no stream uses.
    pub const fn free(id: u64) -> Self {
        Self::Free { id, thread: 0, pending: false }
    }

    /// The same by this thread, if it is a request or a free.
    #[must_use]
    pub const fn on_thread(mut self, by: u32) -> Self {
        if let Self::Request { thread, .. } | Self::Free { thread, .. } = &mut self {
            *thread = by;
        }
        self
    }

    /// The block that it is about.
    pub const fn id(&self) -> Option<u64> {
        match *self {
            Self::Request { id, .. } | Self::Free { id, .. } | Self::Use { id, .. } | Self::Safe { id } => Some(id),
            Self::Wait { id, .. } => id,
            _ => None,
        }
    }

    /// The block that may be handed out again from here on.
    pub const fn over(&self) -> Option<u64> {
        match *self {
            Self::Free { id, pending: false, .. } | Self::Safe { id } => Some(id),
            _ => None,
        }
    }
}
