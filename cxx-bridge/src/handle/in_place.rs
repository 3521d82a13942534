//! The budget of memory that a program has already and pins where it is.

use super::Handle;
use crate::backing::{Memory, touch::threads};
use crate::log::Bytes;

impl<M: Memory> Handle<M> {
    /// Takes so many bytes from the budget, and unpins nothing for them. The error is for people.
    pub fn take_in_place(&self, bytes: usize) -> Result<(), String> {
        self.pinner.take(bytes).map_err(|refused| {
            let quota = self.pinner.quota();
            let budget = quota.budget();
            let [taken, bytes, most] =
                [quota.taken(), bytes, budget.bytes].map(|it| Bytes(it as u64));
            let (limit, why) = (budget.why, refused.reason());
            format!(
                "found {taken} pinned already, expected {bytes} more within the budget of {most}, {limit}; {why}: pin less, give idle \
                 memory back with pinbuddy.empty_cache(), or set BUDDY_MAX_MB"
            )
        })
    }

    /// Puts back what was taken.
    pub fn put_in_place(&self, bytes: usize) {
        self.pinner.put(bytes);
    }

    /// How many threads bring pages in for a thread that waits for them.
    pub fn fill_threads(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, Into::into);
        let processes = pinbuddy_store::launcher::processes().map_or(1, |(count, _)| count);
        let asked = self.config.memory.pin_threads.value;
        threads(asked, cores, processes, false)
    }
}
