//! What is given to calls of CUDA (`driver`) and what comes of them.
//!
//! Addresses and sizes are plain numbers. A device address is one that only the device reads.

use std::fmt;

/// Why something has no answer of its own.
#[derive(Debug)]
pub enum Failure {
    /// A call of CUDA failed: its name, and the driver's words.
    Refused(String),
    /// It cannot be asked on this machine.
    Unavailable(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Refused(why) | Self::Unavailable(why)) = self;
        f.write_str(why)
    }
}

pub type Result<T> = std::result::Result<T, Failure>;

pub fn unavailable<T>(why: impl Into<String>) -> Result<T> {
    Err(Failure::Unavailable(why.into()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToDevice,
    ToHost,
}

impl Direction {
    /// Both, with their words.
    pub const BOTH: [(Self, &'static str); 2] = [
        (Self::ToDevice, "to the device"),
        (Self::ToHost, "to the host"),
    ];
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
/// The handle of a piece of host memory.
pub type Piece = u64;

/// Reserved addresses; each piece in it is a multiple of `granularity` long.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub address: usize,
    pub size: usize,
    pub granularity: usize,
    /// Of the host.
    pub node: i32,
}
