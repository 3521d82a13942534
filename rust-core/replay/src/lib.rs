//! Replays workloads and traces on models of allocators: what a program's requests cost in memory with
//! each allocator, with no CUDA, no PyTorch and no pinned memory.
//!
//! ```text
//!   schedule   which micro-batch goes when through which part of a pipeline's stage
//!   workload   generators: a seed in, the events of a training run or a server out
//!   step       what a replay does at a time
//!   streams    when streams are done with blocks, where a trace does not say
//!   policy     models of allocators: stock PyTorch, the proposal of #181094, pinbuddy's engine
//!   replay     feeds events to a policy and measures what it pinned
//!   prepared   a trace made ready for many replays on our engine
//!   world      a process in simulated time: threads, a worker, a driver, a budget
//!   programs   random programs, run in such a world and compared with stock
//!   device     PyTorch's allocator of device memory, and what feeds it
//! ```
//!
//! Each knows only those above it; `pinbuddy_events` says what an event is. Nothing here pins, waits,
//! reads a clock (except to time the replay itself) or draws a random number except from a seed.

#![forbid(unsafe_code)]

pub mod device;
pub mod policy;
pub mod prepared;
pub mod programs;
pub mod replay;
mod schedule;
pub mod step;
pub mod streams;
pub mod workload;
pub mod world;

/// A mebibyte, in bytes.
pub const MIB: u64 = 1 << 20;
/// A gibibyte, in bytes.
pub const GIB: u64 = 1 << 30;
