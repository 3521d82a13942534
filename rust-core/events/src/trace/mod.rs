//! The trace format: what a program asked of pinned memory and of device memory, one JSON object a line.
//!
//! ```json
//! {"format":"pinbuddy-trace","version":6,"memory":"both"}
//! {"t":0,"op":"alloc","id":1,"bytes":135790592,"thread":0}
//! {"t":12,"op":"event","id":1,"stream":7}
//! {"t":90,"op":"free","id":1,"thread":0}
//! {"t":93,"op":"safe","id":1}
//! {"t":95,"op":"iter"}
//! {"t":96,"op":"wait","took":40,"thread":0}
//! {"t":97,"op":"lost","events":3}
//! {"t":99,"op":"clear"}
//! {"t":99,"op":"alloc","id":2,"bytes":5000000,"thread":0,"device":0,"stream":1}
//! {"t":99,"op":"segment_alloc","device":0,"bytes":20971520}
//! {"t":99,"op":"segment_free","device":0,"bytes":20971520}
//! {"t":99,"op":"node","node":1,"pinned":73400320,"used":20971520}
//! ```
//!
//! The first line is the header; a file without one is of version 1. The version changes when an older
//! reader would misread or refuse the events: version 2 has `safe`, `lost` and a header's `unit`, version 3 has
//! `private`, version 4 device memory, version 5 `wait`, version 6 `node`. A header may say what the run was ([`Header`]).
//!
//! `t` counts from any start and never goes back: microseconds, or nanoseconds if the header has
//! `"unit":"ns"`. `alloc` asks for a block and names it; `event` says that the block is used on a stream, and
//! must not be handed out again before the stream's work so far is done; `free` frees it; `safe` says that
//! this work was seen done, so that the block may be handed out again; `clear` is `empty_cache`; `iter` ends
//! a step; `lost` says that so many events were dropped about here. `thread` is a number that no other thread has at the same
//! time: one that began after another's end may have its number. It may be absent, and is 0 then; any other field that an op does not need must be absent. `"private":1` in an `alloc` says that no engine serves
//! it: it is of a private pool, of a capture, or larger than PyTorch was told to keep.
//!
//! A block that no stream used needs no `safe`: its `free` is its end. A block that was used and has no
//! `safe` was not seen done: since the trace ends before, since its free was captured in a graph, or since
//! it is older than version 2. In a recorded trace no id names two blocks.
//!
//! An `alloc` with a `device` is of that device's memory, asked for a `stream`: streams have numbers from 0 on, for each device
//! in the order in which they were first seen. `segment_alloc` and `segment_free` are memory that the device's allocator got from the driver and
//! gave back. A header with `"memory":"device"` says that there is device memory only, one with `both` that there
//! may be both; without it there is pinned memory only.
//!
//! `wait` says that a thread waited for the driver until `t`, for as long as `took`, in the unit of `t`: in the request that
//! the block of its `id` has served, or without one in a call that gave memory back, as `clear`. It comes right after that.
//!
//! `node` says how much pinned memory serves the devices of a NUMA node from now on, and how much of it is in use. It is there
//! where the recorder's machine has several nodes, and pinned memory is of one each.
//!
//! A trace that is cut off, as by a crash, can be read up to its last whole line ([`Reader::lenient`]).
//! [`Checker`](crate::Checker) checks that ids are valid in their order.

mod error;
mod header;
mod line;
mod reader;
mod writer;

pub use error::{Error, Excerpt, What};
pub use header::{Header, Memory, Unit, VERSION};
pub use reader::{LONGEST_HEADER, LONGEST_LINE, Reader};
pub use writer::Writer;
