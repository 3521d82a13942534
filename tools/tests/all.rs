//! The integration tests of this crate, in one program: each file is a module, and what they share is compiled and linked once.

mod device;
mod outputs;
mod plans;
mod program;
mod report;
mod search;
mod started;
mod top;
mod trace_events;
mod words;
