//! The calls of CUDA that questions make, and why one fails. `driver` makes them; `stand_in` takes its place where there is no GPU.
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

/// One device, and the host memory that it reaches.
pub trait Cuda: Sync {
    /// Has to be called first in each thread other than the first.
    fn enter(&self) -> Result<()>;
    fn register(&self, address: usize, size: usize) -> Result<()>;
    fn unregister(&self, address: usize) -> Result<()>;
    fn host_alloc(&self, size: usize) -> Result<usize>;
    fn host_free(&self, address: usize) -> Result<()>;
    fn device_alloc(&self, size: usize) -> Result<usize>;
    fn device_free(&self, address: usize) -> Result<()>;
    /// A new stream, which is not ordered with others.
    fn stream(&self) -> Result<Stream>;
    fn copy(
        &self,
        direction: Direction,
        host: usize,
        device: usize,
        size: usize,
        stream: Stream,
    ) -> Result<()>;
    fn launch(&self, kernel: Kernel, stream: Stream) -> Result<()>;
    fn finish(&self, stream: Stream) -> Result<()>;
    /// Whether all work of a stream is over.
    fn is_idle(&self, stream: Stream) -> Result<bool>;
    /// Asks for the device's free memory.
    fn memory_info(&self) -> Result<()>;

    /// A range of addresses for pieces of host memory.
    fn reserve(&self, size: usize) -> Result<Range>;
    /// Makes a piece on the range's node, maps it at an address, and opens it to the device and the host.
    fn add_piece(&self, range: &Range, at: usize, size: usize) -> Result<Piece>;
    fn remove_piece(&self, at: usize, size: usize, piece: Piece) -> Result<()>;
    /// Gives a range back in which nothing is mapped.
    fn give_back(&self, range: &Range) -> Result<()>;
}

/// Reserved addresses; each piece in it is a multiple of `granularity` long.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub address: usize,
    pub size: usize,
    pub granularity: usize,
    /// Of the host.
    pub node: i32,
}
