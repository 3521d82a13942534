//! Locks, flags and threads: the standard library's.
//!
//! With the feature `shuttle` they are shuttle's, which runs one thread at a time and chooses which:
//! `tests/races.rs` tries many such choices. A wait ends there only if somebody wakes the sleeper, so a
//! wake that is missing is found, which a timeout would hide.

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU32, AtomicU64},
    },
    thread,
};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU32, AtomicU64},
    },
    thread,
};
