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
//! The first line is the header; a file without one is of version 1. The version changes when this
//! reader would misread or refuse the events.
//!
//! `t` counts microseconds from any start and never goes back. `alloc` asks for a block and names it;
//! `event` says that the block is used on a stream, and must not be handed out again before the stream's
//! work so far is done; `free` frees it; `clear` is `empty_cache`; `iter` ends a step. `thread` may be
//! absent, and is 0 then; any other field that an op does not need must be absent.
//!
//! [`checked`] checks that ids are valid in their order. Knows neither the engine nor any allocator.

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

/// The largest request that a trace may hold, in bytes: 1 TiB, the largest that the engine serves.
pub const MOST_BYTES: u64 = 1 << 40;

/// The latest time that a trace may have, in microseconds: some 35 years.
pub const LATEST: u64 = 1 << 50;

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its time, in microseconds from any start.
    pub t: u64,
    /// What the program did.
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
    /// Used a block on a stream: the stream's work so far must be done before the block is handed out
    /// again.
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
