//! The budget of memory that a program has already and pins where it is.

use super::Handle;
use crate::backing::Memory;
use crate::log::Bytes;

impl<M: Memory> Handle<M> {
    /// Takes so many bytes from the budget; where too little is left, idle memory is unpinned first. The error is for people.
    pub fn take_in_place(&self, bytes: usize) -> Result<(), String> {
        if self.pinner.take(bytes) {
            return Ok(());
        }
        self.empty_cache();
        if self.pinner.take(bytes) {
            return Ok(());
        }
        let quota = self.pinner.quota();
        let (budget, taken) = (quota.budget(), quota.taken());
        Err(format!(
            "found {} pinned already, expected {} more within the budget of {}, {}: pin less, or set BUDDY_MAX_MB",
            Bytes(taken as u64),
            Bytes(bytes as u64),
            Bytes(budget.bytes as u64),
            budget.why
        ))
    }

    /// Puts back what was taken.
    pub fn put_in_place(&self, bytes: usize) {
        self.pinner.put(bytes);
    }

    /// How many threads bring pages in for a thread that waits for them.
    pub fn fill_threads(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, Into::into);
        let processes = crate::launcher::processes().map_or(1, |(count, _)| count);
        crate::backing::threads(
            self.config.memory.pin_threads.value,
            cores,
            processes,
            false,
        )
    }
}
