//! Workloads of pinned-memory requests, and models of allocators that they and traces are replayed
//! on: what a program's requests cost in memory under one allocator or another, with no CUDA, no
//! PyTorch and no memory pinned.
//!
//! ```text
//!   workload   generators: a seed in, the events of a training run or a server out
//!   policy     models of allocators: stock PyTorch, the proposal of #181094, pinbuddy's engine
//!   replay     feeds events to a policy and measures what it pinned
//!   world      a process in simulated time: threads, a worker, a driver, a budget
//!   programs   random programs, run in such a world and compared with stock
//! ```
//!
//! Each knows only those above it; the format of traces is `pinbuddy_trace`'s. Nothing here pins,
//! waits, reads a clock (but to time the replay itself) or draws a random number that the seed does
//! not give.

#![forbid(unsafe_code)]

pub mod policy;
pub mod programs;
pub mod replay;
mod streams;
pub mod workload;
pub mod world;

/// A mebibyte, in bytes.
pub const MIB: u64 = 1 << 20;
/// A gibibyte, in bytes.
pub const GIB: u64 = 1 << 30;
