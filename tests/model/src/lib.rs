//! The engine and the provisioner beside models that are too simple to be wrong.
//!
//! A *case* is a string of bytes that is read as a configuration and then as actions, until it ends.
//! After each action the answer must be the model's, everything that can be seen must be what the
//! model says it is, and [`pinbuddy_core::Engine::audit`] must find nothing. So one reading of bytes
//! serves the tests, which make them at random, and the fuzzers, which look for bytes that reach new
//! code. Knows neither.
//!
//! Invariant: the same bytes are the same case, on every machine.

#![forbid(unsafe_code)]

pub mod choices;
pub mod engine;
pub mod provisioner;
pub mod soak;
