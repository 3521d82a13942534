//! What a user is told once, with the numbers.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Handle;
use super::pins::Refusal;
use crate::backing::Backing;
use crate::log::{self, Bytes};

/// Which of them were given.
#[derive(Debug, Default)]
pub(super) struct Notices {
    shrunk: AtomicBool,
    refused: AtomicBool,
    used_up: AtomicBool,
    full: AtomicBool,
    pub(super) no_thread: AtomicBool,
}

impl<B: Backing> Handle<B> {
    /// The warm-up pins fewer segments than it was to.
    pub(super) fn say_shrunk(&self, segments: usize, wanted: usize) {
        let purse = self.purse();
        let budget = &purse.budget;
        let pinned = match budget.bytes - purse.left() {
            0 => String::new(),
            taken => format!(" {} are pinned already.", Bytes(taken as u64)),
        };
        once(&self.notices.shrunk, || {
            format!(
                "the warm-up pins {segments} of {wanted} blocks of {}: the engine may pin {} in \
                 all, {}.{pinned} BUDDY_MAX_MB sets another limit",
                Bytes(self.config.block_bytes() as u64),
                Bytes(budget.bytes as u64),
                budget.why,
            )
        });
    }

    /// A pin of `bytes` was refused. The first refusal by the driver ends the warm-up.
    pub(super) fn refused(&self, bytes: usize, refusal: &Refusal) {
        let size = Bytes(bytes as u64);
        match refusal {
            Refusal::Driver(why) => {
                self.warm_up.give_up(why);
                let pinned = self.warm_up.progress().pinned;
                let wanted = self.config.block_count.value;
                once(&self.notices.refused, || {
                    format!(
                        "could not pin {size}: {why}. The warm-up ends with {pinned} of {wanted} \
                         blocks; what does not fit in them is pinned by itself, or PyTorch's own"
                    )
                });
            }
            Refusal::Budget => {
                let budget = &self.purse().budget;
                once(&self.notices.used_up, || {
                    format!(
                        "a pin of {size} would pass the budget of {}, {}. What does not fit in \
                         memory that is pinned already is PyTorch's own; BUDDY_MAX_MB sets another \
                         limit",
                        Bytes(budget.bytes as u64),
                        budget.why,
                    )
                });
            }
            Refusal::Full => {
                once(&self.notices.full, || {
                    format!(
                        "a pin of {size} is left to PyTorch's own allocator: {refusal}. BUDDY_MAX_MB \
                         sets a limit that does not depend on that"
                    )
                });
            }
            Refusal::Off => {}
        }
        log::debug(|| format!("could not pin {size}: {refusal}"));
    }
}

pub(super) fn once(given: &AtomicBool, line: impl FnOnce() -> String) {
    if !given.swap(true, Ordering::Relaxed) {
        log::warn(line);
    }
}
