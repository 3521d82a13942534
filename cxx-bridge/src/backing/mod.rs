//! What the handle needs from the world: page-locked memory, a place to have it from, and the
//! completed events of the allocator around it.
//!
//! The one seam between this crate's decisions and CUDA; tests put numbers behind it. What stands
//! behind it in a process is the chain in `register`: `region` makes memory of our own, of the
//! pages that `huge` chooses from what the `machine` offers, on the node that `numa` chooses,
//! mapped by `pages` and filled by `touch` and `crawl`; CUDA registers it in `pieces`, or allocates
//! where that fails.

pub(crate) mod background;
mod crawl;
mod huge;
mod machine;
mod numa;
mod pages;
mod pieces;
mod placement;
mod region;
mod register;
mod said;
mod touch;

use pinbuddy_core::Region;

use crate::budget::{Budget, Limits};

pub use placement::Placement;
pub use register::{Chain, Driver};

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

/// How page-locked memory is had and given back. Never called under a lock (I5).
pub trait Backing: Send + Sync + 'static {
    /// Whether there is a device at all, so that memory can be pinned.
    fn available(&self) -> bool;

    /// This thread's current device.
    fn device(&self) -> Device;

    /// Whose memory the next region of `bytes` bytes can take.
    fn source(&self, _bytes: usize) -> Source {
        Source::Ordinary
    }

    /// How much is set aside for this process, in regions of `bytes` bytes.
    fn set_aside(&self, _bytes: usize) -> usize {
        0
    }

    /// Pins `bytes` bytes of fresh memory and returns their address; the error is for people, and
    /// the driver remembers none.
    fn pin(&self, bytes: usize, device: Device, source: Source) -> Result<usize, String>;

    /// Gives back what `pin` returned, and says whose it was; the error is for people, and what it
    /// is about stays pinned.
    fn unpin(&self, region: Region) -> Result<Source, String>;

    /// Releases every block whose events have all completed.
    fn reap(&self);

    /// This is a forked child, and all regions are the parent's. May not wait or allocate.
    fn forked(&self) {}

    /// What each of these regions has come to. Asks the kernel about new ones: for reports.
    fn placements(&self, regions: &[Region]) -> Vec<Placement> {
        vec![Placement::CUDA; regions.len()]
    }

    /// The most that may be pinned, on this machine, now.
    fn budget(&self, max_mb: Option<usize>) -> Budget {
        Budget::here(max_mb)
    }

    /// Whether the machine has room for a pin of `bytes` of ordinary memory, now.
    fn has_room(&self, bytes: usize) -> bool {
        Budget::leaves_enough(bytes, &Limits::read("/".as_ref()))
    }
}
