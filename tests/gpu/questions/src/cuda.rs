//! What is given to calls of CUDA (`driver`) and what comes of them.
//!
//! Addresses and sizes are plain numbers. A device address is one that only the device reads.

use std::fmt;

/// Why something has no answer of its own: a call of CUDA that failed, with the driver's words, or what this machine lacks.
#[derive(Debug)]
pub struct Failure(pub String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub type Result<T> = std::result::Result<T, Failure>;

pub fn unavailable<T>(why: impl Into<String>) -> Result<T> {
    Err(Failure(why.into()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Writes each byte of `source`, all its bits turned, to `to`.
    Turn {
        to: usize,
        source: usize,
        size: usize,
    },
    /// Runs for so many nanoseconds.
    Spin { nanoseconds: u64 },
}

/// A stream's handle.
pub type Stream = usize;
