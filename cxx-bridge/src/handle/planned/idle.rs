//! A plan's memory goes back when the program has asked for nothing for the idle time, and sooner after it emptied its cache.
//!
//! While the program asks for anything its plan runs, and the next iteration needs all of it. Memory that no request has used
//! yet is ready, not idle. The first request after that has its own region pinned, and all others behind it.

use std::time::Duration;

use pinbuddy_core::Region;
use pinbuddy_slots::Counts;

use super::super::Handle;
use super::super::idle::AFTER_CLEAR;
use super::pins::AGAIN;
use super::{Phase, Planned, State};
use crate::backing::Memory;

/// Whether the plan is in use: what was counted, and since when that is so.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unused {
    counts: Counts,
    /// Blocks in use.
    blocks: u64,
    pub(super) since: Duration,
}

impl<M: Memory> Handle<M> {
    /// Unpins regions of the plan that are idle, one after another. The caller is the worker. Returns whether there were any.
    pub(in crate::handle) fn return_idle_plan(&self) -> bool {
        let (Some(planned), Some(after)) = (&self.planned, self.config.plan_idle()) else {
            return false;
        };
        let mut any = false;
        while !self.cell.is_closed() {
            let next = planned.state.lock().next_unused(self.cell.now(), after);
            let Some(bytes) = next else { break };
            let Some(mut provisioner) = self.cell.provisioner() else {
                break;
            };
            // Before a request finds that the region is missing.
            provisioner.unpins(bytes);
            drop(provisioner);
            let region = planned.state.lock().return_unused(planned, bytes);
            let Some(region) = region else {
                self.has_unpinned();
                break;
            };
            self.unpin_regions(vec![region]);
            self.has_unpinned();
            any = true;
        }
        any
    }

    /// A request came after memory went back by itself: what else is missing is pinned behind it.
    #[cold]
    pub(super) fn wake_plan(&'static self, planned: &Planned) {
        let wakes = planned.state.lock().wakes;
        if wakes && !self.cell.is_closed() && planned.begins(AGAIN) {
            self.pin_plan_in_a_thread();
        }
    }
}

impl State {
    /// The length of an idle region that nobody has used for so long.
    fn next_unused(&mut self, now: Duration, after: Duration) -> Option<usize> {
        let (counts, blocks) = (self.slots.counts(), self.stats.active_blocks.current);
        if (counts, blocks) != (self.unused.counts, self.unused.blocks) {
            let since = now;
            self.unused = Unused { counts, blocks, since };
            return None;
        }
        let was_left = self.left == Some(counts);
        let after = if was_left { after.min(AFTER_CLEAR) } else { after };
        let is_ready = counts.hits + counts.borrowed == 0;
        if is_ready || self.phase == Phase::Pinning || now - self.unused.since < after {
            return None;
        }
        Some(self.slots.first_idle()?.1)
    }

    /// Whether a request that needs a missing region pins it, or waits for that one alone.
    pub(super) fn pins_singly(&self) -> bool {
        self.phase == Phase::Returned || self.wakes && self.phase == Phase::Pinning
    }

    /// Takes the first idle region if it has this length, which it had before, and nothing was asked for since.
    fn return_unused(&mut self, planned: &Planned, bytes: usize) -> Option<Region> {
        let (region, _) = self.slots.first_idle().filter(|it| it.1 == bytes)?;
        if self.slots.counts() != self.unused.counts {
            return None;
        }
        let idle = self.slots.take_region(region)?;
        self.wakes = planned.waits;
        self.stats.returned_bytes += bytes as u64;
        self.returned(planned, vec![idle]).pop()
    }
}
