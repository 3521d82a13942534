//! Memory at the ceiling: what is live comes close to the budget, or the allocator unpins and pins in turns.

use super::{Examples, Finding, Watch};
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
    times: u64,
    most: u64,
    examples: Examples,
}

impl Ceiling {
    pub(super) fn new(limit: Limit) -> Self {
        Self {
            limit,
            ..Self::default()
        }
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
        self.most = self.most.max(live);
        if !self.above && live > near {
            self.above = true;
            self.times += 1;
            self.examples.add(item.line);
        }
    }

    fn finding(&mut self, _world: &World) -> Option<Finding> {
        (self.times > 0).then(|| Finding {
            id: self.limit.id,
            what: self.limit.what,
            evidence: format!(
                "{} above {} of {} ({}), {} live at most",
                show::count(self.times, "time"),
                self.limit.tenths.0,
                self.limit.name,
                show::bytes(self.limit.bytes),
                show::bytes(self.most),
            ),
            count: self.times,
            bytes: self.most,
            lines: self.examples.0.clone(),
            to_do: self.limit.to_do.to_owned(),
        })
    }
}

/// How often the run's own allocator went from unpinning to pinning, which snapshots tell.
#[derive(Default)]
pub(super) struct Turns {
    pinned: u64,
    most: u64,
    in_all: u64,
    unpinned_last: bool,
    turns: u64,
    examples: Examples,
}

/// Fewer turns are phases.
const LEAST: u64 = 8;

impl Watch for Turns {
    fn see(&mut self, item: &Item, _world: &World) {
        match item.event.op {
            Op::SegmentAlloc { bytes } => {
                self.pinned = self.pinned.saturating_add(bytes);
                self.in_all = self.in_all.saturating_add(bytes);
                self.most = self.most.max(self.pinned);
                if std::mem::take(&mut self.unpinned_last) {
                    self.turns += 1;
                    self.examples.add(item.line);
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
        if self.turns < LEAST || self.in_all / 3 < self.most {
            return None;
        }
        Some(Finding {
            id: "pinned_and_unpinned_in_turns",
            what: "The allocator gives memory back and gets it again in turns",
            evidence: format!(
                "{}; {} came from the driver in all, at most {} at once",
                show::count(self.turns, "turn"),
                show::bytes(self.in_all),
                show::bytes(self.most),
            ),
            count: self.turns,
            bytes: self.in_all,
            lines: self.examples.0.clone(),
            to_do: "do not empty the cache in the loop, and keep away from the memory limit: each turn waits for the driver \
                    and for all streams"
                .to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{MIB, Program};
    use pinbuddy_events::Event;

    use super::*;
    use crate::input::About;

    #[test]
    fn a_limit_that_is_almost_used_up_is_found() {
        let mut program = Program::default();
        for _ in 0..3 {
            let blocks: Vec<u64> = (0..10).map(|_| program.alloc(8 * MIB)).collect();
            blocks.iter().for_each(|it| program.free(*it));
        }
        let budget = |it| About {
            budget: it,
            ..About::default()
        };
        let group_limit = |it| About {
            group_limit: it,
            ..About::default()
        };
        let mut evidence = Vec::new();
        for (id, about, close, far) in [
            ("at_the_budget", &budget as &dyn Fn(_) -> _, 85, 100),
            ("near_the_group_limit", &group_limit, 110, 120),
        ] {
            let finding = |mib: Option<u64>| program.finding(id, about(mib.map(|it| it * MIB)));
            let found = finding(Some(close)).unwrap();
            assert_eq!((found.count, found.bytes), (3, 80 * MIB), "{id}");
            evidence.push(found.evidence);
            assert_eq!([finding(Some(far)), finding(None)], [None, None], "{id}");
        }
        insta::assert_snapshot!(evidence[1], @"3 times above seven tenths of the group's limit (110.00 MiB), 80.00 MiB live at most");
    }

    #[test]
    fn turns_of_the_runs_allocator_are_found_and_a_phase_is_none() {
        let found = |turns: u64| {
            let mut watch = Turns::default();
            for line in 0..turns * 2 {
                let bytes = 8 * MIB;
                let op = if line % 2 == 0 {
                    Op::SegmentAlloc { bytes }
                } else {
                    Op::SegmentFree { bytes }
                };
                let item = Item {
                    line,
                    event: Event::host(line, op),
                    block: None,
                    bytes: 0,
                };
                watch.see(&item, &World::default());
            }
            watch.finding(&World::default())
        };
        assert_eq!(found(20).unwrap().count, 19);
        assert_eq!(found(3), None);
    }
}
