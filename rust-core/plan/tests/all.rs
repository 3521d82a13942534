//! The integration tests of this crate, in one program: each file is a module, and what they share is compiled and linked once.

mod clears;
mod exact;
mod file;
mod long;
mod patience;
mod placement;
mod programs;
mod promise;
mod random_programs;
mod several;
