//! What a recording is made of, and who takes it.
//!
//! Knows neither rings nor files. Invariants, kept by `merge`: times never go back; a block is named by a
//! request before anything else names it, and by no other request ever; of each block there is at most one
//! free, and at most one safe after it.

use super::source::Lost;

/// What a program did, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds since the recording began.
    pub at: u64,
    /// Whether it is about device memory; of iterations, no.
    pub device: bool,
    /// What the program did.
    pub what: What,
}

/// What a program did. Blocks have numbers, from 1 on, in the order in which they were requested; threads and
/// streams from 0 on, in the order in which they were first seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A request was served, below the threshold or above it, in a private pool or not.
    Request {
        /// The block's number, used once.
        id: u64,
        /// The request in bytes, as it was asked for.
        bytes: u64,
        /// Who asked.
        thread: u32,
        /// The engine never serves it: it is of a private pool, of a capture, or larger than PyTorch was told to keep.
        private: bool,
    },
    /// A request for device memory was served.
    DeviceRequest {
        /// The block's number, used once.
        id: u64,
        /// The request in bytes, as it was asked for.
        bytes: u64,
        /// Who asked.
        thread: u32,
        /// No plan serves it.
        private: bool,
        /// Whose memory.
        device: u32,
        /// The stream that it was asked for, as a number of the device's.
        stream: u32,
    },
    /// A device's allocator got memory from the driver, or gave it back.
    Segment {
        /// Which device's.
        device: u32,
        /// How much.
        bytes: u64,
        /// It was given back.
        gone: bool,
    },
    /// A block was freed.
    Free {
        /// The block.
        id: u64,
        /// Who freed it.
        thread: u32,
        /// Whether events are outstanding: `Safe` follows once they are complete, if that is ever known.
        pending: bool,
    },
    /// The events of a freed block are complete.
    Safe {
        /// The block.
        id: u64,
    },
    /// A block was used on a stream.
    Use {
        /// The block.
        id: u64,
        /// The stream.
        stream: u32,
    },
    /// A thread waited for the driver until now.
    Wait {
        /// The block whose request waited; none if it was in no request, as while the cache is emptied.
        id: Option<u64>,
        /// How long, in nanoseconds; not longer than the recording.
        took: u64,
        /// Who waited.
        thread: u32,
    },
    /// The cache was emptied by the program.
    Clear,
    /// An iteration is over, says the program.
    Iteration,
}

impl What {
    /// The block that may be used again from here on: freed, and no event is outstanding.
    pub fn over(&self) -> Option<u64> {
        match *self {
            Self::Free {
                id, pending: false, ..
            }
            | Self::Safe { id } => Some(id),
            _ => None,
        }
    }
}

/// Takes what is recorded. Called by the recorder's thread alone, with no lock held.
pub trait Sink: Send {
    /// The next event. Blocks that were requested before the sink was added are never named.
    fn event(&mut self, event: Event);

    /// These events were dropped about here, for want of room in the rings.
    fn lost(&mut self, events: Lost);

    /// Whether it is a trace, which `pinbuddy.trace.stop()` ends.
    fn is_trace(&self) -> bool {
        false
    }

    /// There is nothing more for a while: a good time to write.
    fn pause(&mut self) {}

    /// Whether it wants more; once false, it is ended.
    fn wants_more(&self) -> bool {
        true
    }

    /// The recording ends, or the process: the last call. Must not take long.
    fn end(&mut self);
}
