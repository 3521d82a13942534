//! What a stream can be asked to do, and doing it on the stream's thread.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::error::{Error, Status, lock};
use crate::hazard::Flight;
use crate::memory;
use crate::queue::Queue;

/// One item of a stream's queue.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// Move bytes.
    Copy(Transfer),
    /// Fill bytes.
    Set { target: Area, value: u8 },
    /// Keep the stream busy: a spin kernel.
    Hold(Duration),
    /// A kernel that is left out.
    Kernel,
    /// Call a host function.
    Call(HostCall),
    /// Say that the queue has come this far: an event.
    Reach(Arc<Completion>),
    /// Wait until another queue has come that far.
    Await(Arc<Completion>),
    /// Wait until another queue has finished the work that it had been given.
    AwaitQueue(Arc<Queue>, u64),
    /// Give a device allocation back.
    FreeDevice(usize),
    /// Work whose memory is watched until it is done.
    Watched(Box<Work>, Arc<Flight>),
}

/// Rows of bytes: `rows` times `width`, `pitch` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) address: usize,
    pub(crate) pitch: usize,
    pub(crate) width: usize,
    pub(crate) rows: usize,
}

impl Area {
    /// A plain run of bytes.
    pub(crate) fn line(address: usize, bytes: usize) -> Self {
        Self::rows(address, bytes, bytes, 1)
    }

    /// Rows `pitch` apart.
    pub(crate) fn rows(address: usize, pitch: usize, width: usize, rows: usize) -> Self {
        Self { address, pitch, width, rows }
    }

    /// How many bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.width * self.rows
    }

    /// How far it reaches, gaps included.
    pub(crate) fn extent(&self) -> usize {
        match self.rows {
            0 => 0,
            rows => self.pitch * (rows - 1) + self.width,
        }
    }

    fn row(&self, index: usize) -> usize {
        self.address + index * self.pitch
    }
}

/// Bytes to move.
#[derive(Debug, Clone)]
pub(crate) struct Transfer {
    pub(crate) target: Area,
    pub(crate) source: Source,
}

/// Where the bytes come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// Memory, read when the stream gets there.
    Memory(Area),
    /// Bytes that were read at the call, row after row.
    Staged(Arc<[u8]>),
}

/// A host function and its argument.
#[derive(Clone)]
pub(crate) struct HostCall(pub(crate) Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for HostCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostCall")
    }
}

/// A moment that a queue reaches once: what an event records.
#[derive(Debug, Default)]
pub(crate) struct Completion {
    at: Mutex<Option<Instant>>,
    reached: Condvar,
    /// How long after that it is seen.
    lag: Duration,
}

impl Completion {
    /// One that is seen so much later than it is there.
    pub(crate) fn late(lag: Duration) -> Self {
        Self { lag, ..Self::default() }
    }

    /// Whether the queue got there, as far as anybody can tell.
    pub(crate) fn is_seen(&self) -> bool {
        self.at().is_some_and(|at| at.elapsed() >= self.lag)
    }

    /// When the queue got there, if it did.
    pub(crate) fn at(&self) -> Option<Instant> {
        *lock(&self.at)
    }

    /// Wait until the queue gets there.
    pub(crate) fn wait(&self) {
        let mut at = lock(&self.at);
        while at.is_none() {
            at = self.reached.wait(at).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// The queue gets there, or a test says so.
    pub(crate) fn reach(&self) {
        *lock(&self.at) = Some(Instant::now());
        self.reached.notify_all();
    }
}

thread_local! {
    static ON_STREAM: Cell<bool> = const { Cell::new(false) };
}

/// From now on this thread is a stream's.
pub(crate) fn enter_stream() {
    ON_STREAM.set(true);
}

/// Refuse to wait inside a host function, where waiting for a stream could never end.
pub(crate) fn may_wait() -> Status {
    if ON_STREAM.get() { Err(Error::cudaErrorNotPermitted) } else { Ok(()) }
}

impl Work {
    /// Whether it takes no time and touches no memory, so that an idle queue has done it as soon
    /// as it is asked, as an idle GPU has.
    pub(crate) fn is_instant(&self) -> bool {
        match self {
            Self::Reach(_) | Self::Kernel => true,
            Self::Await(completion) => completion.at().is_some(),
            _ => false,
        }
    }

    /// Do it.
    pub(crate) fn perform(self) {
        match self {
            Self::Copy(transfer) => transfer.perform(),
            Self::Set { target, value } => {
                for row in 0..target.rows {
                    fill(target.row(row), value, target.width);
                }
            }
            Self::Hold(time) => std::thread::sleep(time),
            Self::Kernel => {}
            Self::Call(call) => (call.0)(),
            Self::Reach(completion) => completion.reach(),
            Self::Await(completion) => completion.wait(),
            Self::AwaitQueue(queue, ticket) => queue.wait(ticket),
            Self::FreeDevice(address) => memory::release_device(address),
            Self::Watched(work, flight) => {
                flight.arrives();
                work.perform();
            }
        }
    }
}

impl Transfer {
    fn perform(&self) {
        match &self.source {
            Source::Memory(source) => {
                for row in 0..self.target.rows {
                    copy(self.target.row(row), source.row(row), self.target.width);
                }
            }
            Source::Staged(bytes) => {
                for row in 0..self.target.rows {
                    let from = bytes.as_ptr().expose_provenance() + row * self.target.width;
                    copy(self.target.row(row), from, self.target.width);
                }
            }
        }
    }
}

/// Read rows of memory now.
pub(crate) fn stage(source: Area) -> Arc<[u8]> {
    let mut bytes = vec![0_u8; source.bytes()];
    let target = bytes.as_mut_ptr().expose_provenance();
    for row in 0..source.rows {
        copy(target + row * source.width, source.row(row), source.width);
    }
    bytes.into()
}

fn copy(target: usize, source: usize, bytes: usize) {
    // SAFETY: both ranges were named by a copy call, whose caller vouches for them as it does to
    // CUDA; device ranges were found in the registry. They may overlap, which `copy` allows.
    unsafe {
        std::ptr::copy(
            std::ptr::with_exposed_provenance::<u8>(source),
            std::ptr::with_exposed_provenance_mut::<u8>(target),
            bytes,
        );
    }
}

fn fill(target: usize, value: u8, bytes: usize) {
    // SAFETY: the range was named by a memset call and found in the registry.
    unsafe {
        std::ptr::write_bytes(std::ptr::with_exposed_provenance_mut::<u8>(target), value, bytes);
    }
}
