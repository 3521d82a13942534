//! What the handle needs of CUDA and of the allocator around it: page-locked memory, and to have streams
//! asked whether they are done.
//!
//! The one seam between this crate's decisions and CUDA; tests put numbers behind it. What stands
//! behind [`Memory`] in a process is the chain in `register`: `region` makes memory of our own, of the
//! pages that `huge` chooses from what the `machine` offers, on the node that `numa` chooses,
//! mapped by `mapping` and filled by `touch`, `collapse` and `compaction`; CUDA registers it in `pieces`, or allocates
//! where that fails. How much it may be is the budget's affair.

mod areas;
pub(crate) mod background;
mod collapse;
mod compaction;
mod driver;
mod huge;
mod machine;
mod mapping;
mod numa;
mod pages;
mod pieces;
mod placement;
mod region;
mod register;
mod said;
mod tally;
mod touch;

use std::fmt;
use std::time::Duration;

use pinbuddy_core::Region;

pub use driver::Driver;
pub use placement::Placement;
pub use register::Chain;

/// The device whose context a pin is to use where the process has none yet: the current device of
/// the thread that asked, as CUDA numbers it; negative where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device(pub i32);

/// Whose memory a region takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The machine's, which others need as well.
    Ordinary,
    /// Huge pages that the system has set aside, which nobody else has use for.
    SetAside,
}

/// Says whether a pin that is under way is to go on. Asked by several threads at once, under no lock,
/// so it may wait: whoever waits there has nothing in the kernel's hands or the driver's.
pub trait Control: Sync {
    /// Asked before each slice of what is filled. May wait, for instance while others pin; false: the
    /// pin is to end now, and what was mapped for it is unmapped.
    fn go_on(&self) -> bool;

    /// As `go_on`, right before the driver registers, or allocates, so many bytes: it cannot be
    /// stopped there.
    fn may_register(&self, _bytes: usize) -> bool {
        self.go_on()
    }
}

/// Goes on, whatever comes.
#[derive(Clone, Copy, Debug)]
pub struct Foreground;

impl Control for Foreground {
    fn go_on(&self) -> bool {
        true
    }
}

/// A region that was pinned, and where the time went: filling can be stopped, the driver cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// Where it starts.
    pub base: usize,
    /// What mapping it and filling it with pages took; not what was waited or rested meanwhile.
    pub filling: Duration,
    /// How long the driver took; all of it where the driver allocates.
    pub registering: Duration,
}

/// Why nothing was pinned. Nothing is left of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpinned {
    /// It was to end: no failure, and nothing to be said to anybody.
    Stopped,
    /// There is no such memory; for people.
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

/// How page-locked memory is had and given back. Never called under a lock (I5).
pub trait Memory: Send + Sync + 'static {
    /// Whether there is a device at all, so that memory can be pinned.
    fn available(&self) -> bool;

    /// This thread's current device.
    fn device(&self) -> Device;

    /// Has the driver start, where it has not: the threads that it makes for itself have the priority of
    /// the thread that calls this.
    fn start(&self, _device: Device) {}

    /// Whose memory the next region of `bytes` bytes can take.
    fn source(&self, _bytes: usize) -> Source {
        Source::Ordinary
    }

    /// How much is set aside for this process, in regions of `bytes` bytes.
    fn set_aside(&self, _bytes: usize) -> usize {
        0
    }

    /// Pins `bytes` bytes of fresh memory, as long as `control` lets it; the driver remembers no
    /// error.
    fn pin(
        &self,
        bytes: usize,
        device: Device,
        source: Source,
        control: &dyn Control,
    ) -> Result<Pinned, Unpinned>;

    /// Gives back what `pin` returned, and says whose it was; the error is for people, and what it
    /// is about stays pinned.
    fn unpin(&self, region: Region) -> Result<Source, String>;

    /// This is a forked child, and all regions are the parent's. May not wait or allocate.
    fn forked(&self) {}

    /// Whether forked children cannot read the regions that this process has.
    fn hides(&self) -> bool {
        false
    }

    /// What each of these regions has come to. Asks the kernel about new ones: for reports.
    fn placements(&self, regions: &[Region]) -> Vec<Placement> {
        vec![Placement::CUDA; regions.len()]
    }
}

/// Whom to tell that streams are to be asked. Never called under a lock (I5).
pub trait Completions: fmt::Debug + Send + Sync {
    /// Releases every block whose events have all completed.
    fn reap(&self);
}
