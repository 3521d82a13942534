//! Requests below the threshold, which are stock's, that are a little longer than a power of two: stock pins almost
//! twice as much.

use std::collections::HashMap;

use super::{Finding, Seen, Watch};
use crate::advise::world::World;
use crate::show;
use pinbuddy_events::{Item, Op};

#[derive(Default)]
pub(super) struct Powers {
    wasted: u64,
    /// How many, and the most that was wasted at once.
    seen: Seen,
    /// How many requests of each size there were.
    sizes: HashMap<u64, u64>,
}

/// Sizes that are counted.
const MOST_SIZES: usize = 4096;

/// Less than so much is not worth a word.
const LEAST: u64 = 16 << 20;

/// What stock pins for nothing, if `bytes` is at most a quarter above a power of two.
fn waste(bytes: u64, world: &World) -> Option<u64> {
    let pinned = bytes.next_power_of_two();
    let just_above = bytes < world.counts.threshold && bytes <= pinned / 8 * 5 && bytes >= 4096;
    just_above.then_some(pinned - bytes)
}

impl Watch for Powers {
    fn see(&mut self, item: &Item, world: &World) {
        match item.event.op {
            Op::Request { bytes, .. } => {
                let Some(waste) = waste(bytes, world) else {
                    return;
                };
                self.seen.add(item.line, 0);
                self.wasted += waste;
                self.seen.bytes = self.seen.bytes.max(self.wasted);
                if self.sizes.len() < MOST_SIZES || self.sizes.contains_key(&bytes) {
                    *self.sizes.entry(bytes).or_default() += 1;
                }
            }
            Op::Free { .. } => self.wasted -= waste(item.bytes, world).unwrap_or(0),
            _ => {}
        }
    }

    fn finding(&mut self, world: &World) -> Option<Finding> {
        if self.seen.bytes < LEAST.max(world.counts.largest_live / 100) {
            return None;
        }
        let (size, times) = self.sizes.iter().max_by_key(|(size, times)| (**times, **size))?;
        let lower = (size >> 20).max(1);
        let smaller = if *size >= 1 << 20 {
            format!(", or BUDDY_THRESHOLD_MB={lower}, so that blocks serve them, which fit exactly")
        } else {
            String::new()
        };
        Some(self.seen.found(
            "just_above_a_power_of_two",
            "Requests below the threshold are a little longer than powers of two, to which stock rounds up",
            format!(
                "{}; the most frequent size is {} ({size} bytes, {times} times), for which stock pins {}; at most {} were \
                 pinned for nothing at once",
                show::count(self.seen.count, "request"),
                show::bytes(*size),
                show::bytes(size.next_power_of_two()),
                show::bytes(self.seen.bytes),
            ),
            format!(
                "PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:1 (torch 2.13 and later; in 2.13.0 not without pinbuddy) for those above 1 MiB{smaller}"
            ),
        ))
    }
}
