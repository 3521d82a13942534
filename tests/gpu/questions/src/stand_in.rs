//! Takes the driver's place where there is none: ordinary memory, kernels on the host. Refuses what a driver would.
//!
//! The stream of a spinning kernel is busy for its time; other work is done at once. It serves tests and runs in the simulator,
//! and its answers say nothing of a GPU.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::cuda::{Cuda, Direction, Failure, Kernel, Piece, Range, Result, Stream};
use crate::memory::{Region, read, write};

pub const GRANULARITY: usize = 2 << 20;

#[derive(Default)]
pub struct StandIn {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    registered: BTreeMap<usize, usize>,
    /// Of the device, of the host, and reserved ranges.
    memory: HashMap<usize, Region>,
    /// Until when each stream is busy.
    streams: Vec<Instant>,
    /// Where each piece is mapped, and its length.
    pieces: BTreeMap<usize, usize>,
}

fn only_if(allowed: bool, name: &str) -> Result<()> {
    match allowed {
        true => Ok(()),
        false => Err(Failure::Refused(format!(
            "{name} returned 1 (invalid argument)"
        ))),
    }
}

impl StandIn {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of pieces, and of what was allocated or reserved, that are left.
    #[cfg(test)]
    pub fn left(&self) -> (usize, usize) {
        let state = self.state();
        (state.pieces.len(), state.memory.len())
    }
}

impl Cuda for StandIn {
    fn enter(&self) -> Result<()> {
        Ok(())
    }

    fn register(&self, address: usize, size: usize) -> Result<()> {
        let mut state = self.state();
        let before = state.registered.range(..address + size).next_back();
        let free = before.is_none_or(|(low, length)| low + length <= address);
        only_if(free, "cuMemHostRegister")?;
        state.registered.insert(address, size);
        Ok(())
    }

    fn unregister(&self, address: usize) -> Result<()> {
        let found = self.state().registered.remove(&address);
        only_if(found.is_some(), "cuMemHostUnregister")
    }

    fn host_alloc(&self, size: usize) -> Result<usize> {
        let region = Region::untouched(size)?;
        let address = region.address;
        self.state().memory.insert(address, region);
        Ok(address)
    }

    fn host_free(&self, address: usize) -> Result<()> {
        let found = self.state().memory.remove(&address);
        only_if(found.is_some(), "cuMemFreeHost")
    }

    fn device_alloc(&self, size: usize) -> Result<usize> {
        self.host_alloc(size)
    }

    fn device_free(&self, address: usize) -> Result<()> {
        self.host_free(address)
    }

    fn stream(&self) -> Result<Stream> {
        let mut state = self.state();
        state.streams.push(Instant::now());
        Ok(state.streams.len() - 1)
    }

    fn copy(
        &self,
        way: Direction,
        host: usize,
        device: usize,
        size: usize,
        _: Stream,
    ) -> Result<()> {
        match way {
            Direction::ToDevice => write(device, &read(host, size)),
            Direction::ToHost => write(host, &read(device, size)),
        }
        Ok(())
    }

    fn launch(&self, kernel: Kernel, stream: Stream) -> Result<()> {
        match kernel {
            Kernel::Spin { nanoseconds } => {
                self.state().streams[stream] = Instant::now() + Duration::from_nanos(nanoseconds);
            }
            Kernel::Turn { to, source, size } => {
                let turned: Vec<u8> = read(source, size).iter().map(|it| !it).collect();
                write(to, &turned);
            }
        }
        Ok(())
    }

    fn finish(&self, stream: Stream) -> Result<()> {
        let until = self.state().streams[stream];
        thread::sleep(until.saturating_duration_since(Instant::now()));
        Ok(())
    }

    fn is_idle(&self, stream: Stream) -> Result<bool> {
        Ok(self.state().streams[stream] <= Instant::now())
    }

    fn memory_info(&self) -> Result<()> {
        Ok(())
    }

    fn reserve(&self, size: usize) -> Result<Range> {
        let address = self.host_alloc(size)?;
        Ok(Range {
            address,
            size,
            granularity: GRANULARITY,
            node: 0,
        })
    }

    fn add_piece(&self, range: &Range, at: usize, size: usize) -> Result<Piece> {
        let mut state = self.state();
        only_if(size.is_multiple_of(GRANULARITY), "cuMemCreate")?;
        let inside = range.address <= at && at + size <= range.address + range.size;
        let before = state.pieces.range(..at + size).next_back();
        only_if(
            inside && before.is_none_or(|(low, length)| low + length <= at),
            "cuMemMap",
        )?;
        state.pieces.insert(at, size);
        Ok(at as Piece)
    }

    fn remove_piece(&self, at: usize, size: usize, piece: Piece) -> Result<()> {
        let found = self.state().pieces.remove(&at);
        only_if(found == Some(size) && piece == at as Piece, "cuMemUnmap")
    }

    fn give_back(&self, range: &Range) -> Result<()> {
        only_if(self.state().pieces.is_empty(), "cuMemAddressFree")?;
        self.host_free(range.address)
    }
}
