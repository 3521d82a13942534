//! Where entries come from: rings that threads write into, one each.
//!
//! A trait, so that merging is tested without C++.

use std::ops::AddAssign;

use pinbuddy_events::{Op, Whose};

/// What a thread recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The counter's value.
    pub ticks: u64,
    /// The recording and the allocation.
    pub allocation: Allocation,
    /// Whose memory. Of the end and the uses of a block the device is not said: 0.
    pub whose: Whose,
    /// What happened.
    pub kind: Kind,
}

/// A recording's number in the upper 16 bits, and a number of its own below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Allocation(pub u64);

impl Allocation {
    /// The recording that it belongs to.
    pub fn session(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request, a wait for the driver, an iteration and all else that is an event already, but for ids and threads. A wait
    /// is that of the request that the entry is about, or of no request.
    Event(Op),
    /// A free, after which as many `Done` follow.
    Free {
        /// Outstanding events.
        events: u64,
    },
    /// One of a freed block's events is complete.
    Done,
    /// A use on a stream.
    Use {
        /// Of pinned memory the stream's name, of device memory its number.
        stream: u64,
    },
}

/// How many entries were dropped, by the memory that they are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Of pinned memory, and iterations.
    pub pinned: u64,
    /// Of device memory.
    pub device: u64,
}

impl Lost {
    /// One entry about this memory.
    pub fn one(whose: Whose) -> Self {
        let device = u64::from(whose != Whose::Host);
        Self {
            pinned: 1 - device,
            device,
        }
    }
}

impl AddAssign for Lost {
    fn add_assign(&mut self, other: Self) {
        self.pinned += other.pinned;
        self.device += other.device;
    }
}

impl Entry {
    /// Reads what C++ wrote (`cpp/recording.h`); `None` for nothing that it writes.
    pub fn of(ticks: u64, allocation: u64, what: u64) -> Option<Self> {
        let value = what & ((1 << 60) - 1);
        let part = |from: u32, bits: u32| value >> from & ((1 << bits) - 1);
        // As `cpp/device/device_trace.cpp` packs them.
        let (packed_bytes, packed_device) = (part(0, 41), Whose::Device(part(53, 6) as u32));
        let (host, device) = (Whose::Host, Whose::Device(0));
        let request = |bytes, stream, private| Op::Request {
            id: 0,
            bytes,
            thread: 0,
            stream,
            private,
        };
        let wait = Op::Wait {
            id: None,
            took: value,
            thread: 0,
        };
        let bytes = packed_bytes;
        let (whose, kind) = match what >> 60 {
            0 => (host, Kind::Event(wait)),
            1 => (host, Kind::Event(request(value, 0, false))),
            2 => (host, Kind::Free { events: value }),
            3 => (host, Kind::Done),
            4 => (host, Kind::Use { stream: value }),
            5 => (host, Kind::Event(Op::Clear)),
            6 => (host, Kind::Event(Op::Iteration)),
            7 => (host, Kind::Event(request(value, 0, true))),
            8 => {
                let op = request(bytes, part(41, 12) as u32, part(59, 1) == 1);
                (packed_device, Kind::Event(op))
            }
            9 => (device, Kind::Use { stream: value }),
            10 => (packed_device, Kind::Event(Op::SegmentAlloc { bytes })),
            11 => (packed_device, Kind::Event(Op::SegmentFree { bytes })),
            12 => (device, Kind::Free { events: value }),
            13 => (device, Kind::Done),
            _ => return None,
        };
        Some(Self {
            ticks,
            allocation: Allocation(allocation),
            whose,
            kind,
        })
    }
}

/// What a drain of one ring found besides entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// The number of the thread that wrote them.
    pub thread: u32,
    /// What was dropped since the last drain.
    pub lost: Lost,
}

/// The rings. All but [`Self::record`] and [`Self::ticks`] are for one thread at a time.
pub trait Source: Send + Sync {
    /// Requests are recorded from now on, under this number; 0: not at all.
    fn record(&self, session: u16);
    /// The counter's value.
    fn ticks(&self) -> u64;
    /// How many rings there are.
    fn rings(&self) -> usize;
    /// Appends what a ring holds to `into`, the oldest first.
    fn drain(&self, ring: usize, into: &mut Vec<Entry>) -> Drained;
    /// What found no ring since the last call.
    fn lost(&self) -> Lost;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cpp_packs_is_unpacked() {
        let of = |what| Entry::of(1, 2, what).map(|it| (it.whose, it.kind));
        let request = |bytes, stream, private| {
            let (id, thread) = (0, 0);
            Kind::Event(Op::Request {
                id,
                bytes,
                thread,
                stream,
                private,
            })
        };
        let packed = 8 << 60 | 1 << 59 | 63 << 53 | 4095 << 41 | 1 << 40;
        let expected = (Whose::Device(63), request(1 << 40, 4095, true));
        assert_eq!(of(packed), Some(expected));
        let given_back = Kind::Event(Op::SegmentFree { bytes: 7 });
        assert_eq!(
            of(11 << 60 | 2 << 53 | 7),
            Some((Whose::Device(2), given_back))
        );
        let (id, took, thread) = (None, 5, 0);
        let wait = Kind::Event(Op::Wait { id, took, thread });
        let of_kind = |kind: u64| of(kind << 60 | 5);
        assert_eq!(of_kind(0), Some((Whose::Host, wait)));
        assert_eq!(of_kind(7), Some((Whose::Host, request(5, 0, true))));
        assert_eq!(
            of_kind(12),
            Some((Whose::Device(0), Kind::Free { events: 5 }))
        );
        assert_eq!(of_kind(13), Some((Whose::Device(0), Kind::Done)));
        assert_eq!(of_kind(15), None);
        // What C++ counts as lost is about the same memory.
        for (kind, (whose, _)) in (0..16).filter_map(|it| Some((it, of_kind(it)?))) {
            assert_eq!(whose != Whose::Host, kind >= 8, "{kind}");
        }
    }
}
