//! Locks, flags and threads: the standard library's.
//!
//! With the feature `shuttle` they are shuttle's, which runs one thread at a time and chooses which:
//! `tests/races.rs` tries many such choices. A wait ends there only if somebody wakes the sleeper, so a
//! wake that is missing is found, which a timeout would hide.

use std::io;

use crate::lock;

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

/// Starts a thread of this name, which nobody waits for. That takes long where the machine is busy, so it is never done under
/// a lock (I5).
pub(crate) fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    lock::assert_none_held("starting a thread");
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(run).map(drop)
}
