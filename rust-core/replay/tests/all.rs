//! The integration tests of this crate, in one program: each file is a module, and what they share is compiled and linked once.

mod clears;
mod device_never_worse;
mod device_plans;
mod device_programs;
mod exact_lists;
mod never_worse;
mod other_inputs;
mod plans;
#[path = "../../plan/tests/programs/mod.rs"]
mod programs;
mod real_allocator;
