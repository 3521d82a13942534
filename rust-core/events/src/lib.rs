//! What happens to memory: one vocabulary for all that write it down, read it, check it or replay it.
//!
//! [`trace`] is its text format, with a reader and a writer. [`Checker`] checks that events are valid in their order, and
//! numbers blocks for replays. The crate `pinbuddy-snapshot` reads the same events from PyTorch's memory snapshots. Knows
//! neither the engine nor any allocator.

#![forbid(unsafe_code)]

mod checked;
mod event;
pub mod trace;

pub use checked::{Checker, Item, MOST_LIVE};
pub use event::{Event, LATEST, MICROSECOND, MOST_BYTES, Op, Whose};
