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
}

impl<B: Backing> Handle<B> {
    /// The warm-up pins fewer segments than it was to.
    pub(super) fn say_shrunk(&self, segments: usize, wanted: usize) {
        if !self.notices.shrunk.swap(true, Ordering::Relaxed) {
            let purse = self.purse();
            let budget = &purse.budget;
            let pinned = match budget.bytes - purse.left() {
                0 => String::new(),
                taken => format!(" {} are pinned already.", Bytes(taken as u64)),
            };
            log::warn(|| {
                format!(
                    "the warm-up pins {segments} of {wanted} blocks of {}: the engine may pin {} in \
                     all, {}.{pinned} BUDDY_MAX_MB sets another limit",
                    Bytes(self.config.block_bytes() as u64),
                    Bytes(budget.bytes as u64),
                    budget.why,
                )
            });
        }
    }

    /// A pin of `bytes` was refused.
    pub(super) fn say_refused(&self, bytes: usize, refusal: &Refusal) {
        match refusal {
            Refusal::Off => {}
            Refusal::Budget if !self.notices.used_up.swap(true, Ordering::Relaxed) => {
                let budget = &self.purse().budget;
                log::warn(|| {
                    format!(
                        "a pin of {} would pass the budget of {}, {}. What does not fit in memory \
                         that is pinned already is PyTorch's own; BUDDY_MAX_MB sets another limit",
                        Bytes(bytes as u64),
                        Bytes(budget.bytes as u64),
                        budget.why,
                    )
                });
            }
            Refusal::Driver(why) if !self.notices.refused.swap(true, Ordering::Relaxed) => {
                let progress = self.warm_up.progress();
                log::warn(|| {
                    format!(
                        "could not pin {}: {why}. The warm-up has pinned {} of {} blocks and ends; \
                         what does not fit in them is pinned by itself, or PyTorch's own",
                        Bytes(bytes as u64),
                        progress.pinned,
                        self.config.block_count.value,
                    )
                });
            }
            _ => log::debug(|| format!("could not pin {}: {refusal}", Bytes(bytes as u64))),
        }
    }
}
