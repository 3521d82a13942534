//! What the handle needs from CUDA and the allocator around it: page-locked memory, and releases of
//! blocks whose events are complete.
//!
//! The only seam between this crate's decisions and CUDA; tests put numbers behind it. In a process,
//! [`Memory`] is the chain in `register`. `region` makes memory of our own: `huge` chooses the pages from
//! what the `machine` offers, `numa` the node, `homes` tells devices' nodes apart; `mapping` maps it;
//! `touch`, `collapse` and `compaction` fill it. CUDA registers it with a `lead`, or allocates if that fails, or is sooner (`pace`). The
//! budget decides how much it may be.

mod areas;
pub(crate) mod background;
mod collapse;
mod compaction;
pub(crate) mod crew;
mod driver;
mod homes;
mod huge;
mod lead;
mod machine;
mod mapping;
mod numa;
mod pace;
pub(crate) mod pages;
mod placement;
mod refusal;
mod region;
mod register;
mod said;
mod tally;
pub(crate) mod touch;

use std::fmt;
use std::time::Duration;

use pinbuddy_core::{Home, Region};

pub use driver::Driver;
pub use homes::Seen;
pub use placement::Placement;
pub use register::Chain;

/// The device whose context a pin uses if the process has none yet: the current device of the thread
/// that asked, by CUDA's number; negative for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device(pub i32);

/// Which memory a region takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The machine's free memory, which others need as well.
    Ordinary,
    /// Huge pages that the system has set aside, which nobody else uses.
    SetAside,
}

/// Says whether a pin under way goes on. Several threads ask at once, under no lock, so it may wait: a
/// thread that waits there is in no call of the kernel's or the driver's.
pub trait Control: Sync {
    /// Asked before each slice is filled. May wait, for instance while a request pins. False ends the pin,
    /// and its memory is unmapped.
    fn go_on(&self) -> bool;

    /// As `go_on`, right before the driver registers or allocates so many bytes: that cannot be stopped.
    fn may_register(&self, _bytes: usize) -> bool {
        self.go_on()
    }
}

/// Always goes on.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreground;

#[cfg(test)]
impl Control for Foreground {
    fn go_on(&self) -> bool {
        true
    }
}

/// A pinned region, and the time that it took: filling can be stopped, the driver cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// Where it starts.
    pub base: usize,
    /// How long mapping and filling took, without waits and rests.
    pub filling: Duration,
    /// How long the driver took; all of the time if the driver allocates.
    pub registering: Duration,
}

/// Why nothing was pinned. Nothing stays mapped or registered but what [`Memory::unpin_rests`] unpins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpinned {
    /// The pin was stopped: no failure, and nothing to report.
    Stopped,
    /// There is no such memory; the reason is for people.
    Refused(String),
}

impl fmt::Display for Unpinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("it was stopped"),
            Self::Refused(why) => f.write_str(why),
        }
    }
}

/// Pins and unpins memory. Never called under a lock (I5).
pub trait Memory: Send + Sync + 'static {
    /// Whether there is a device, so that memory can be pinned.
    fn available(&self) -> bool;

    /// This thread's current device.
    fn device(&self) -> Device;

    /// How many homes memory can have: a power of two. With one, the functions below are not called.
    fn homes(&self) -> usize {
        1
    }

    /// The home of memory for a device. It stays the same.
    fn home(&self, _device: Device) -> Home {
        Home::default()
    }

    /// The first device that was seen of this home.
    fn at_home(&self, _home: Home) -> Option<Seen> {
        None
    }

    /// The unit in which memory can be pinned, in bytes: a region takes whole pages, so whole pages count. A power of two.
    fn page(&self) -> usize {
        1
    }

    /// Starts the driver, if it has not: its threads get the priority of the calling thread.
    fn start(&self, _device: Device) {}

    /// Which memory the next region of `bytes` bytes can take.
    fn source(&self, _bytes: usize) -> Source {
        Source::Ordinary
    }

    /// Bytes that are set aside for this process, in regions of `bytes` bytes.
    fn set_aside(&self, _bytes: usize) -> usize {
        0
    }

    /// Pins `bytes` bytes of fresh memory, as long as `control` lets it. Leaves no sticky CUDA error.
    fn pin(&self, bytes: usize, device: Device, source: Source, control: &dyn Control) -> Result<Pinned, Unpinned>;

    /// Unpins what `pin` returned, and says which memory it was. The error is for people; the region
    /// then stays pinned, and may be unpinned again.
    fn unpin(&self, region: Region) -> Result<Source, String>;

    /// Unpins what pins that failed could not give back then, as far as it can be now.
    fn unpin_rests(&self) {}

    /// Called in a child after a fork: all regions are the parent's. May not wait or allocate.
    fn enter_child(&self) {}

    /// Whether this process's regions are hidden from children.
    fn hides(&self) -> bool {
        false
    }

    /// The placement of each of these regions. Asks the kernel about new ones: for reports.
    fn placements(&self, regions: &[Region]) -> Vec<Placement> {
        vec![Placement::CUDA; regions.len()]
    }
}

/// The allocator around the handle: queries the events that blocks wait for, and hears who waits for the driver. Never
/// called under a lock (I5).
pub trait Completions: fmt::Debug + Send + Sync {
    /// Releases every block whose events are all complete. Whether all streams could be asked.
    fn reap(&self) -> bool;

    /// The same by a thread of ours, of which the program and its captures notice nothing.
    fn reap_behind(&self) {
        self.reap();
    }

    /// The calling thread begins to wait for the driver in a call of the program's: a request, or one that gives memory
    /// back. Such waits may lie within each other.
    fn wait_begins(&self, _in_request: bool) {}

    /// The wait that has begun last is over.
    fn wait_ends(&self) {}
}
