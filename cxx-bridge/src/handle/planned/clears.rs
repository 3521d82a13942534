//! What becomes of a plan's regions when the program empties its cache, or memory is short.
//!
//! Idle regions are returned. But where the plan foresees the clear, because the recorded loop empties its cache there,
//! the loop goes on and would have them pinned again: they stay, unless the machine is short of memory, or nothing was
//! asked for since the last clear, which somebody must have meant.

use std::ops::Range;

use pinbuddy_core::Region;

use super::super::Handle;
use super::{Phase, Planned, State};
use crate::backing::Memory;

impl<M: Memory> Handle<M> {
    /// The cache is emptied: regions of the plan to be unpinned; a request that needs one pins it again.
    pub(in crate::handle) fn clear_plan(&self) -> Vec<Region> {
        let Some(planned) = &self.planned else {
            return Vec::new();
        };
        let foreseen = planned.state.lock().foresees_a_clear();
        let now = self.cell.now();
        // Read without a lock. A pin would have to leave as much again as it takes.
        let free = foreseen.then(|| self.pinner.capacity.free().unwrap_or(usize::MAX));
        let mut state = planned.state.lock();
        let counts = state.slots.counts();
        let idle = match free {
            Some(free) if free >= state.slots.idle_bytes() => {
                state.left = Some(counts);
                state.unused.since = now;
                state.slots.take_unwanted()
            }
            _ => state.slots.take_idle(),
        };
        state.returned(planned, idle)
    }

    /// PyTorch itself could not pin memory: all regions in which nothing lies.
    pub(in crate::handle) fn take_idle_plan(&self) -> Vec<Region> {
        let Some(planned) = &self.planned else {
            return Vec::new();
        };
        let mut state = planned.state.lock();
        let idle = state.slots.take_idle();
        state.returned(planned, idle)
    }

    /// The bytes of these.
    pub(in crate::handle) fn idle_plan_bytes(&self) -> usize {
        let planned = self.planned.as_ref();
        planned.map_or(0, |it| it.state.lock().slots.idle_bytes())
    }
}

impl State {
    fn foresees_a_clear(&self) -> bool {
        self.left != Some(self.slots.counts()) && self.slots.foresees_a_clear()
    }

    pub(super) fn returned(&mut self, planned: &Planned, idle: Vec<(usize, Range<usize>)>) -> Vec<Region> {
        let idle: Vec<Region> = idle.into_iter().map(region).collect();
        for region in &idle {
            self.stats.region_unpinned(region.bytes as u64, false);
        }
        // What was refused may be had now.
        self.refused.clear();
        if self.phase == Phase::Done {
            self.phase = self.after_pins(planned);
        }
        idle
    }

    /// Where nobody pins: whether regions are missing that can be asked for.
    pub(super) fn after_pins(&self, planned: &Planned) -> Phase {
        let mut missing = self.slots.missing();
        match missing.any(|it| !self.refused.contains(&it.0)) {
            false => Phase::Done,
            true if planned.waits => Phase::Returned,
            true => Phase::Cold,
        }
    }
}

fn region((_, at): (usize, Range<usize>)) -> Region {
    Region { base: at.start, bytes: at.end - at.start }
}
