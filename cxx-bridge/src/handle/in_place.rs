//! The budget of memory that a program has already and pins where it is.

use super::Handle;
use crate::backing::Memory;
use crate::log::Bytes;

impl<M: Memory> Handle<M> {
    /// Memory is about to be pinned in place: the engine of a child that is made from now on is off.
    pub fn pins_in_place(&self) {
        self.pinner.is_used();
    }

    /// Takes so many bytes from the budget, of memory of which so many are not there yet. Unpins nothing of the engine's. The
    /// error is for people.
    pub fn take_in_place(&self, counted: usize, missing: usize) -> Result<(), String> {
        let Err(refused) = self.pinner.take(counted, missing) else {
            return Ok(());
        };
        let quota = self.pinner.quota();
        let (budget, taken) = (quota.budget(), quota.taken());
        Err(format!(
            "found {} pinned already, expected {} more within the budget of {}, {}; {}: pin less, give idle memory back with \
             pinbuddy.empty_cache(), or set BUDDY_MAX_MB",
            Bytes(taken as u64),
            Bytes(counted as u64),
            Bytes(budget.bytes as u64),
            budget.why,
            refused.reason()
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
