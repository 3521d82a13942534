//! Traces of pinned-memory requests, workloads that make them, and policies that they are
//! replayed on: what a program's requests cost in memory under one allocator or another, with no
//! CUDA, no PyTorch and no memory pinned.
//!
//! ```text
//!   trace      one event a line, read with distrust and written in one form
//!   workload   generators: a seed in, the events of a training run or a server out
//!   checked    events in order, of blocks that live; ids become small numbers
//!   policy     models of allocators: stock PyTorch, the proposal of #181094, pinbuddy's engine
//!   replay     feeds events to a policy and measures what it pinned
//! ```
//!
//! Each knows only those above it. Nothing here pins, waits, reads a clock (but to time the
//! replay itself) or draws a random number that the seed does not give.

#![forbid(unsafe_code)]

pub mod checked;
pub mod policy;
pub mod programs;
pub mod replay;
mod streams;
pub mod trace;
pub mod workload;
pub mod world;

/// A mebibyte, in bytes.
pub const MIB: u64 = 1 << 20;
/// A gibibyte, in bytes.
pub const GIB: u64 = 1 << 30;
