//! Plans, advice and pages, made from what a program asked for: a trace, PyTorch's own snapshot, or lifetimes in a table.
//!
//! ```text
//!   input    files in, events out: traces, snapshots, tables of lifetimes
//!   place    a table of lifetimes in, offsets out (`plan --instance`)
//!   plan     a trace in, a plan out (`plan`)
//!   plans    the folder of plans in, which there are and which a command line has out (`plans`)
//!   advise   a trace in, findings and settings to paste out (`advise`)
//!   report   a trace in, a page to look at out (`report`)
//!   top      programs that run in, how their memory stands out (`top`)
//!   output   where all of these write
//!   explain  a message in, what it means and what to do out (`explain`)
//!   workloads  a workload's name in, a trace out (`trace`)
//!   simulate  traces in, what models of allocators pin for them out (`simulate`)
//!   doctor   a machine in, what it offers for pinned memory out (`doctor`)
//!   completions  a shell in, a script that completes command lines out (`completions`)
//! ```
//!
//! The program `pinbuddy-tools` travels in the wheel and in the plug-in; `python -m pinbuddy` starts it, and `cargo pinbuddy` in a checkout.
//! Knows no torch, no CUDA and no checkout. What is decided comes from rust-core; here are files, clocks, texts.

// Calls of CUDA's driver alone are not safe (`doctor/driver.rs`).
#![deny(unsafe_code)]

pub mod advise;
pub mod baseline;
pub mod cli;
pub mod completions;
pub mod doctor;
pub mod effort;
pub mod explain;
mod flow;
pub mod input;
pub mod output;
pub mod place;
pub mod plan;
pub mod plans;
pub mod report;
mod show;
pub mod simulate;
pub mod top;
mod waited;
pub mod workloads;
