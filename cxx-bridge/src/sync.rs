//! Locks, flags and threads: the standard library's.
//!
//! With the feature `shuttle` they are shuttle's, which runs one thread at a time and chooses which:
//! `src/races` tries many such choices. A wait ends there only if somebody wakes the sleeper, so a
//! wake that is missing is found, which a timeout would hide.

use std::io;

use crate::lock;

#[cfg(test)]
use std::sync::Mutex as Unseen;

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

/// A value that a test sets while threads read it. The system's mutex, never held where shuttle may switch: a switch at each
/// look would spend schedules.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Dial<T>(Unseen<T>);

#[cfg(test)]
impl<T: Copy> Dial<T> {
    pub(crate) fn at(value: T) -> Self {
        Self(value.into())
    }

    pub(crate) fn get(&self) -> T {
        *self.0.lock().unwrap()
    }

    pub(crate) fn set(&self, value: T) {
        *self.0.lock().unwrap() = value;
    }
}

#[cfg(test)]
impl Dial<usize> {
    /// Returns what it was.
    pub(crate) fn add(&self, more: usize) -> usize {
        let mut value = self.0.lock().unwrap();
        let was = *value;
        *value += more;
        was
    }

    pub(crate) fn take(&self, less: usize) {
        *self.0.lock().unwrap() -= less;
    }

    /// One less; false if it is 0.
    pub(crate) fn spend(&self) -> bool {
        let mut value = self.0.lock().unwrap();
        let any = *value > 0;
        *value -= usize::from(any);
        any
    }
}
