//! The trace format: what a program asked of pinned memory, one JSON object a line.
//!
//! ```json
//! {"format":"pinbuddy-trace","version":1}
//! {"t":0,"op":"alloc","id":1,"bytes":135790592,"thread":0}
//! {"t":12,"op":"event","id":1,"stream":7}
//! {"t":90,"op":"free","id":1,"thread":0}
//! {"t":95,"op":"iter"}
//! {"t":99,"op":"clear"}
//! ```
//!
//! The first line is the header; a file without one is of version 1. A new version is one whose
//! events this reader would misread or refuse.
//!
//! `t` counts microseconds from any start and never goes back. `alloc` asks for a block and names
//! it; `event` says that the block is used on a stream, and so must not be handed out again before
//! what the stream has been given is over; `free` gives it back; `clear` is `empty_cache`; `iter`
//! ends a step. `thread` may be absent and is 0 then; other fields that an op does not need must
//! be.
//!
//! Here: what an event is. Whether ids make sense in their order is for [`checked`]. Knows neither
//! the engine nor an allocator that a trace is replayed on.

#![forbid(unsafe_code)]

pub mod checked;
mod error;
mod header;
mod line;
mod reader;
mod writer;

pub use error::{Error, What};
pub use header::VERSION;
pub use reader::{LONGEST_LINE, Reader};
pub use writer::Writer;

/// The largest request that a trace may hold, in bytes: 1 TiB, as the engine serves at most.
pub const MOST_BYTES: u64 = 1 << 40;

/// The latest moment that a trace may speak of, in microseconds: some 35 years.
pub const LATEST: u64 = 1 << 50;

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in microseconds from any start.
    pub t: u64,
    /// What.
    pub op: Op,
}

/// What a program did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Asked for `bytes` bytes, `1..=`[`MOST_BYTES`].
    Alloc {
        /// The block's name, until it is freed.
        id: u64,
        /// The request in bytes.
        bytes: u64,
        /// Who asked.
        thread: u32,
    },
    /// Freed a block.
    Free {
        /// The block.
        id: u64,
        /// Who freed it.
        thread: u32,
    },
    /// Used a block on a stream: what the stream was given so far must be over before the block
    /// is handed out again.
    Event {
        /// The block.
        id: u64,
        /// The stream.
        stream: u32,
    },
    /// `empty_cache`.
    Clear,
    /// A step is over.
    Iter,
}
