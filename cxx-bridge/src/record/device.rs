//! What is recorded of a device's memory: which blocks live, where, and which streams use them.
//!
//! PyTorch's allocator and a plan's regions report here, each under a lock of its own. A block is named by its address while
//! it lives. Invariants: an end is recorded only if the beginning was; that a place may be used again is recorded before
//! anybody can be given it. Where nothing is recorded no lock is taken, so a child of a process that records takes none.
//! Knows neither sinks nor files.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustc_hash::FxHashMap;

use super::code;
use super::writing::{self, of_none, push, session};
use crate::lock::Lock;

/// As many as an index of PyTorch's can name.
const DEVICES: usize = 128;

static ALL: LazyLock<Vec<DeviceTrace>> = LazyLock::new(|| (0..DEVICES as u32).map(DeviceTrace::of).collect());

/// One device's.
#[derive(Debug)]
pub(crate) struct DeviceTrace {
    device: u32,
    /// Live blocks that other streams have used: most frees find none.
    used: AtomicUsize,
    state: Lock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The recording that the blocks are of.
    session: u16,
    blocks: FxHashMap<usize, Block>,
    /// Numbers of streams, in the order in which they were seen.
    streams: FxHashMap<usize, u64>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    allocation: u64,
    /// Other streams use it.
    is_used: bool,
    /// Its end was recorded, after which it was not safe yet.
    is_freed: bool,
}

/// The trace of this device; of the first one, for an index that names none.
pub(crate) fn device_trace(device: i8) -> &'static DeviceTrace {
    let index = usize::try_from(device).unwrap_or(0);
    &ALL[index]
}

impl DeviceTrace {
    fn of(device: u32) -> Self {
        Self { device, used: AtomicUsize::new(0), state: Lock::default() }
    }

    /// Memory at this address was handed out to a stream. `planless`: no plan can serve such a request.
    pub(crate) fn request(&self, address: usize, bytes: usize, stream: usize, planless: bool) {
        let now = session();
        if now == 0 {
            return;
        }
        let mut state = self.state.lock();
        if state.session != now {
            state.session = now;
            state.blocks.clear();
            self.used.store(0, Ordering::Relaxed);
        }
        // In their order, whether or not the entry finds room.
        let stream = state.number_of(stream);
        let what = code::device_request(self.device, stream, bytes as u64, planless);
        let mut allocation = 0;
        if writing::request(what, false, &mut allocation) {
            let block = Block { allocation, is_used: false, is_freed: false };
            state.blocks.insert(address, block);
        }
    }

    /// The program gave the block up; [`Self::done`] follows, and says that if no other stream used the block.
    pub(crate) fn free(&self, address: usize) {
        if self.used.load(Ordering::Relaxed) == 0 || session() == 0 {
            return;
        }
        let mut state = self.state.lock();
        if let Some(block) = state.blocks.get_mut(&address)
            && block.is_used
        {
            block.is_freed = true;
            push(block.allocation, code::entry(code::DEVICE_FREE, 1));
        }
    }

    /// The place may be used again.
    pub(crate) fn done(&self, address: usize) {
        if session() == 0 {
            return;
        }
        let mut state = self.state.lock();
        let Some(block) = state.blocks.remove(&address) else {
            return;
        };
        if block.is_used {
            self.used.fetch_sub(1, Ordering::Relaxed);
        }
        let kind = if block.is_freed { code::DEVICE_DONE } else { code::DEVICE_FREE };
        push(block.allocation, code::entry(kind, 0));
    }

    /// Another stream uses the block.
    pub(crate) fn uses(&self, address: usize, stream: usize) {
        if session() == 0 {
            return;
        }
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let Some(block) = state.blocks.get_mut(&address) else {
            return;
        };
        if !block.is_used {
            block.is_used = true;
            self.used.fetch_add(1, Ordering::Relaxed);
        }
        let allocation = block.allocation;
        push(allocation, code::device_use(state.number_of(stream)));
    }

    /// PyTorch's allocator got memory from the driver, or gave it back.
    pub(crate) fn segment(&self, bytes: usize, gone: bool) {
        let what = code::device_segment(self.device, bytes as u64, gone);
        push(of_none(), what);
    }
}

impl State {
    fn number_of(&mut self, stream: usize) -> u64 {
        let next = self.streams.len() as u64;
        *self.streams.entry(stream).or_insert(next)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
