//! What the chain of backings needs of CUDA.

use std::time::Duration;

use pinbuddy_core::Region;

use super::Device;

/// What CUDA, and the allocator around it, do for the chain. Never called under a lock (I5); errors
/// are for people, and the driver remembers none.
pub trait Driver: Send + Sync + 'static {
    /// As [`super::Memory::available`].
    fn available(&self) -> bool;
    /// As [`super::Memory::device`].
    fn device(&self) -> Device;
    /// Has the driver ready, so that a process that ends meanwhile lets this pin end before it.
    fn initialise(&self, device: Device) -> Result<(), String>;
    /// The address of the device on its bus, for instance `0000:1B:00.0`.
    fn pci_address(&self, device: Device) -> Option<String>;

    /// Memory as PyTorch's own settings ask.
    fn pin(&self, bytes: usize, device: Device) -> Result<usize, String>;
    /// Gives back what `pin` returned.
    fn unpin(&self, region: Region) -> Result<(), String>;

    /// Registers memory that is mapped.
    fn register(&self, piece: Region, device: Device) -> Result<(), String>;
    /// Undoes `register`.
    fn unregister(&self, piece: Region) -> Result<(), String>;

    /// A region was mapped and registered, and that took so long.
    fn pinned(&self, region: Region, taken: Duration);
    /// Such a region is about to be unregistered and unmapped.
    fn goes(&self, region: Region);
    /// It was, and that took so long.
    fn gone(&self, taken: Duration);
}
