//! What the chain of backings needs from CUDA.

use std::time::Duration;

use pinbuddy_core::Region;

use super::Device;

/// CUDA and the allocator around it, for the chain. Never called under a lock (I5). Errors are for
/// people, and leave no sticky CUDA error.
pub trait Driver: Send + Sync + 'static {
    /// As [`super::Memory::available`].
    fn available(&self) -> bool;
    /// As [`super::Memory::device`].
    fn device(&self) -> Device;
    /// Initialises the driver, so that its exit handler runs after ours waited for this pin.
    fn initialise(&self, device: Device) -> Result<(), String>;
    /// The address of the device on its bus, for instance `0000:1B:00.0`.
    fn pci_address(&self, device: Device) -> Option<String>;

    /// Memory as PyTorch's own settings ask.
    fn pin(&self, bytes: usize, device: Device) -> Result<usize, String>;
    /// Unpins what `pin` returned.
    fn unpin(&self, region: Region) -> Result<(), String>;

    /// Registers memory that is mapped.
    fn register(&self, region: Region, device: Device) -> Result<(), String>;
    /// Whether devices see a registered region where it is; an error where they do not.
    fn check(&self, _region: Region) -> Result<(), String> {
        Ok(())
    }
    /// Undoes `register`.
    fn unregister(&self, region: Region) -> Result<(), String>;

    /// Reports that a region was mapped and registered, and how long that took.
    fn pinned(&self, region: Region, taken: Duration);
    /// Reports that such a region is about to be unregistered and unmapped.
    fn goes(&self, region: Region);
    /// Reports that it was, and how long that took.
    fn gone(&self, taken: Duration);
}
