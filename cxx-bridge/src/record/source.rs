//! Where entries come from: rings that threads write into, one each.
//!
//! A trait, so that merging is tested without them.

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
    /// The allocation of this number, below 2^48, in a recording.
    pub(super) fn new(session: u16, number: u64) -> Self {
        Self(u64::from(session) << 48 | number)
    }

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
        Self { pinned: 1 - device, device }
    }
}

impl AddAssign for Lost {
    fn add_assign(&mut self, other: Self) {
        self.pinned += other.pinned;
        self.device += other.device;
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
