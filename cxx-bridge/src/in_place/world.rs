//! What pins in place ask of PyTorch's storages, of the driver and of the budget.

use std::ops::Range;

/// See the module's documentation. The errors are for people.
pub(crate) trait World {
    /// Memory is about to be pinned: readies the driver, or says why nothing can be.
    fn begin(&self) -> Result<(), String>;

    /// The memory of a storage. `pin` becomes its last pin, which may have ended; 0 if it had none. `shared`: PyTorch says that
    /// other processes may have it.
    fn memory_of(&self, storage: usize, shared: bool, pin: &mut u64) -> Result<Range<usize>, String>;

    /// From now on the storage's memory, which must still be at `address`, is given back only where `dies` lets it go.
    fn hold(&self, storage: usize, pin: u64, address: usize) -> Result<(), String>;

    /// Gives memory back that could not go when its storage did.
    fn let_go(&self, owner: usize);

    /// Waits for all work of all devices. False, at once, where that would break a capture off.
    fn finish_devices(&self) -> Result<bool, String>;

    /// Registers whole pages, all of them or none.
    fn register(&self, pages: &Range<usize>, read_only: bool) -> Result<(), String>;

    /// Unregisters what [`Self::register`] has registered.
    fn unregister(&self, pages: &Range<usize>) -> Result<(), String>;

    /// Takes so many bytes from the budget.
    fn take(&self, bytes: usize) -> Result<(), String>;

    /// Puts back what was taken.
    fn put(&self, bytes: usize);

    /// How many threads bring pages in.
    fn threads(&self) -> usize;
}
