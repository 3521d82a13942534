//! Memory at the ceiling: what is live comes close to the budget, or the allocator unpins and pins in turns.

use super::{Finding, Seen, Watch};
use crate::advise::world::World;
use crate::show;
use pinbuddy_events::{Item, Op};

/// What limits pinned memory, and what is said of it.
#[derive(Default)]
pub(super) struct Limit {
    pub(super) id: &'static str,
    pub(super) what: &'static str,
    /// So many tenths of it are close, in words and as a number.
    pub(super) tenths: (&'static str, u64),
    pub(super) name: &'static str,
    pub(super) to_do: &'static str,
    pub(super) bytes: u64,
}

/// What the user has set.
pub(super) fn set(budget: u64) -> Ceiling {
    Ceiling::new(Limit {
        id: "at_the_budget",
        what: "What the program needs comes close to the budget, where memory is given back and pinned again",
        tenths: ("nine tenths", 9),
        name: "BUDDY_MAX_MB",
        to_do: "raise BUDDY_MAX_MB if the machine has the memory, or pin less at once",
        bytes: budget,
    })
}

/// The most that the control groups of the run allowed. All that the process has counts there.
pub(super) fn of_the_group(limit: u64) -> Ceiling {
    Ceiling::new(Limit {
        id: "near_the_group_limit",
        what: "What is pinned comes close to the limit of the control group, which counts all memory of the program",
        // Not nearer: the program itself needs memory, too.
        tenths: ("seven tenths", 7),
        name: "the group's limit",
        to_do: "raise the limit of the container or the job, or set BUDDY_MAX_MB below it: beyond the limit the kernel ends \
                the program",
        bytes: limit,
    })
}

/// How often what is live comes close to a limit.
#[derive(Default)]
pub(super) struct Ceiling {
    limit: Limit,
    above: bool,
    seen: Seen,
}

impl Ceiling {
    pub(super) fn new(limit: Limit) -> Self {
        Self { limit, ..Self::default() }
    }
}

impl Watch for Ceiling {
    fn see(&mut self, item: &Item, world: &World) {
        let near = self.limit.bytes / 10 * self.limit.tenths.1;
        let Op::Request { bytes, .. } = item.event.op else {
            // So far below that it is another time.
            self.above &= world.live_bytes > near / 6 * 5;
            return;
        };
        let live = world.live_bytes.saturating_add(bytes);
        self.seen.bytes = self.seen.bytes.max(live);
        if !self.above && live > near {
            self.above = true;
            self.seen.add(item.line, 0);
        }
    }

    fn finding(&mut self, _world: &World) -> Option<Finding> {
        (self.seen.count > 0).then(|| {
            self.seen.found(
                self.limit.id,
                self.limit.what,
                format!(
                    "{} above {} of {} ({}), {} live at most",
                    show::count(self.seen.count, "time"),
                    self.limit.tenths.0,
                    self.limit.name,
                    show::bytes(self.limit.bytes),
                    show::bytes(self.seen.bytes),
                ),
                self.limit.to_do,
            )
        })
    }
}

/// How often the run's own allocator went from unpinning to pinning, which snapshots tell.
#[derive(Default)]
pub(super) struct Turns {
    pinned: u64,
    most: u64,
    unpinned_last: bool,
    seen: Seen,
}

/// Fewer turns are phases.
const LEAST: u64 = 8;

impl Watch for Turns {
    fn see(&mut self, item: &Item, _world: &World) {
        match item.event.op {
            Op::SegmentAlloc { bytes } => {
                self.pinned = self.pinned.saturating_add(bytes);
                self.seen.bytes = self.seen.bytes.saturating_add(bytes);
                self.most = self.most.max(self.pinned);
                if std::mem::take(&mut self.unpinned_last) {
                    self.seen.add(item.line, 0);
                }
            }
            Op::SegmentFree { bytes } => {
                self.pinned = self.pinned.saturating_sub(bytes);
                self.unpinned_last = true;
            }
            _ => {}
        }
    }

    fn finding(&mut self, _world: &World) -> Option<Finding> {
        if self.seen.count < LEAST || self.seen.bytes / 3 < self.most {
            return None;
        }
        Some(self.seen.found(
            "pinned_and_unpinned_in_turns",
            "The allocator gives memory back and gets it again in turns",
            format!(
                "{}; {} came from the driver in all, at most {} at once",
                show::count(self.seen.count, "turn"),
                show::bytes(self.seen.bytes),
                show::bytes(self.most),
            ),
            "do not empty the cache in the loop, and keep away from the memory limit: each turn waits for the driver \
                    and for all streams",
        ))
    }
}
