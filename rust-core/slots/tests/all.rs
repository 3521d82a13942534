//! The integration tests of this crate, in one program: each file is a module, and what they share is compiled and linked once.

mod clears;
mod drift;
mod layouts;
mod learning;
mod slots;
mod threads;
