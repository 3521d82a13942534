//! Where entries come from: rings that threads write into, one each.
//!
//! A trait, so that merging is tested without C++.

use std::ops::AddAssign;

/// What a thread recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The counter's value.
    pub ticks: u64,
    /// The recording and the allocation.
    pub allocation: Allocation,
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
    /// A request of so many bytes.
    Request(u64),
    /// The same; the engine never serves it.
    PrivateRequest(u64),
    /// A free, after which so many `Done` follow.
    Free(u64),
    /// One of a freed block's events is complete.
    Done,
    /// A use on the stream of this name.
    Use(u64),
    /// The thread waited for the driver, so many nanoseconds: in the request that it is about, or in no request.
    Wait(u64),
    /// The cache was emptied.
    Clear,
    /// An iteration is over.
    Iteration,
    /// A request for device memory.
    DeviceRequest {
        /// Its bytes.
        bytes: u64,
        /// The stream that it was asked for, as a number of the device's.
        stream: u32,
        /// Whose memory.
        device: u32,
        /// No plan serves it.
        private: bool,
    },
    /// A use of device memory on the stream of this number.
    DeviceUse(u32),
    /// A free of device memory, after which so many `DeviceDone` follow.
    DeviceFree(u64),
    /// One of the uses of freed device memory is over.
    DeviceDone,
    /// A device's allocator got so many bytes from the driver.
    SegmentAlloc {
        /// Its bytes.
        bytes: u64,
        /// Which device's.
        device: u32,
    },
    /// It gave so many bytes back.
    SegmentFree {
        /// Its bytes.
        bytes: u64,
        /// Which device's.
        device: u32,
    },
}

impl Kind {
    /// Whether it is about device memory; of an iteration, no.
    pub fn is_device(self) -> bool {
        match self {
            Self::Request(_)
            | Self::PrivateRequest(_)
            | Self::Free(_)
            | Self::Done
            | Self::Use(_)
            | Self::Wait(_)
            | Self::Clear
            | Self::Iteration => false,
            Self::DeviceRequest { .. }
            | Self::DeviceUse(_)
            | Self::DeviceFree(_)
            | Self::DeviceDone
            | Self::SegmentAlloc { .. }
            | Self::SegmentFree { .. } => true,
        }
    }
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
    /// One entry of this kind.
    pub fn one(kind: Kind) -> Self {
        let device = u64::from(kind.is_device());
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
        let (bytes, stream, device) = (part(0, 41), part(41, 12) as u32, part(53, 6) as u32);
        let kind = match what >> 60 {
            0 => Kind::Wait(value),
            1 => Kind::Request(value),
            2 => Kind::Free(value),
            3 => Kind::Done,
            4 => Kind::Use(value),
            5 => Kind::Clear,
            6 => Kind::Iteration,
            7 => Kind::PrivateRequest(value),
            8 => Kind::DeviceRequest {
                bytes,
                stream,
                device,
                private: part(59, 1) == 1,
            },
            9 => Kind::DeviceUse(value as u32),
            10 => Kind::SegmentAlloc { bytes, device },
            11 => Kind::SegmentFree { bytes, device },
            12 => Kind::DeviceFree(value),
            13 => Kind::DeviceDone,
            _ => return None,
        };
        Some(Self {
            ticks,
            allocation: Allocation(allocation),
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
        let packed = 8 << 60 | 1 << 59 | 63 << 53 | 4095 << 41 | 1 << 40;
        let kind = Kind::DeviceRequest {
            bytes: 1 << 40,
            stream: 4095,
            device: 63,
            private: true,
        };
        assert_eq!(Entry::of(1, 2, packed).unwrap().kind, kind);
        let packed = 11 << 60 | 2 << 53 | 7;
        let kind = Kind::SegmentFree {
            bytes: 7,
            device: 2,
        };
        assert_eq!(Entry::of(1, 2, packed).unwrap().kind, kind);
        let of = |kind: u64| Entry::of(1, 2, kind << 60 | 5).map(|it| it.kind);
        assert_eq!(of(0), Some(Kind::Wait(5)));
        assert_eq!(of(12), Some(Kind::DeviceFree(5)));
        assert_eq!(of(13), Some(Kind::DeviceDone));
        assert_eq!(of(15), None);
        // What C++ counts as lost is about the same memory.
        for (kind, known) in (0..16).filter_map(|it| Some((it, of(it)?))) {
            assert_eq!(known.is_device(), kind >= 8, "{known:?}");
        }
    }
}
