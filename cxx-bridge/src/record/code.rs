//! How an entry's last word is written and read: its kind in the upper 4 bits, and a number below, or several.
//!
//! Invariant: the highest bit says that the entry is about device memory.

use pinbuddy_events::{Op, Whose};

use super::ring::Raw;
use super::source::{Allocation, Entry, Kind};

pub(super) const WAIT: u64 = 0; // nanoseconds; of an allocation, or of no request
pub(super) const REQUEST: u64 = 1; // bytes
pub(super) const FREE: u64 = 2; // how many `DONE` will follow
pub(super) const DONE: u64 = 3;
pub(super) const USE: u64 = 4; // the stream
pub(super) const CLEAR: u64 = 5;
pub(super) const ITERATION: u64 = 6;
pub(super) const PRIVATE_REQUEST: u64 = 7; // bytes; the engine never serves it
const DEVICE_REQUEST: u64 = 8; // whose, for which stream, and bytes
const DEVICE_USE: u64 = 9; // the stream's number
const SEGMENT_ALLOC: u64 = 10; // whose, and bytes
const SEGMENT_FREE: u64 = 11;
pub(super) const DEVICE_FREE: u64 = 12;
pub(super) const DEVICE_DONE: u64 = 13;

const KIND_SHIFT: u32 = 60;

/// Some bits of a word: the first one, and their number.
struct Bits(u32, u32);

const BYTES: Bits = Bits(0, 41);
/// Streams beyond are one.
const STREAM: Bits = Bits(41, 12);
const DEVICE: Bits = Bits(53, 6);
const PLANLESS: Bits = Bits(59, 1);

impl Bits {
    const fn most(&self) -> u64 {
        (1 << self.1) - 1
    }

    fn write(&self, value: u64) -> u64 {
        value.min(self.most()) << self.0
    }

    fn read(&self, word: u64) -> u64 {
        word >> self.0 & self.most()
    }
}

/// A word of one number.
pub(super) fn entry(kind: u64, value: u64) -> u64 {
    kind << KIND_SHIFT | (value & ((1 << KIND_SHIFT) - 1))
}

/// A use of device memory, on the stream of this number.
pub(super) fn device_use(stream: u64) -> u64 {
    entry(DEVICE_USE, stream.min(STREAM.most()))
}

/// A request of device memory. `planless`: no plan can serve it.
pub(super) fn device_request(device: u32, stream: u64, bytes: u64, planless: bool) -> u64 {
    let whose = DEVICE.write(device.into());
    let request = STREAM.write(stream) | PLANLESS.write(planless.into());
    entry(DEVICE_REQUEST, whose | request | BYTES.write(bytes))
}

/// Device memory that PyTorch's allocator got from the driver, or gave back.
pub(super) fn device_segment(device: u32, bytes: u64, gone: bool) -> u64 {
    let kind = if gone { SEGMENT_FREE } else { SEGMENT_ALLOC };
    entry(kind, DEVICE.write(device.into()) | BYTES.write(bytes))
}

/// Whether the entry is about device memory.
pub(super) fn is_of_device(what: u64) -> bool {
    what >> KIND_SHIFT >= DEVICE_REQUEST
}

impl Entry {
    /// Reads what a thread wrote; `None` for nothing that one writes.
    pub(super) fn of(raw: Raw) -> Option<Self> {
        let value = raw.what & ((1 << KIND_SHIFT) - 1);
        let request = |bytes, stream, private| Op::Request { id: 0, bytes, thread: 0, stream, private };
        let wait = Op::Wait { id: None, took: value, thread: 0 };
        let bytes = BYTES.read(value);
        let (host, device) = (Whose::Host, Whose::Device(0));
        let named_device = Whose::Device(DEVICE.read(value) as u32);
        let (whose, kind) = match raw.what >> KIND_SHIFT {
            WAIT => (host, Kind::Event(wait)),
            REQUEST => (host, Kind::Event(request(value, 0, false))),
            FREE => (host, Kind::Free { events: value }),
            DONE => (host, Kind::Done),
            USE => (host, Kind::Use { stream: value }),
            CLEAR => (host, Kind::Event(Op::Clear)),
            ITERATION => (host, Kind::Event(Op::Iteration)),
            PRIVATE_REQUEST => (host, Kind::Event(request(value, 0, true))),
            DEVICE_REQUEST => {
                let (stream, planless) = (STREAM.read(value), PLANLESS.read(value) == 1);
                let op = request(bytes, stream as u32, planless);
                (named_device, Kind::Event(op))
            }
            DEVICE_USE => (device, Kind::Use { stream: value }),
            SEGMENT_ALLOC => (named_device, Kind::Event(Op::SegmentAlloc { bytes })),
            SEGMENT_FREE => (named_device, Kind::Event(Op::SegmentFree { bytes })),
            DEVICE_FREE => (device, Kind::Free { events: value }),
            DEVICE_DONE => (device, Kind::Done),
            _ => return None,
        };
        Some(Self { ticks: raw.ticks, allocation: Allocation(raw.allocation), whose, kind })
    }
}
