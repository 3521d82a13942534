//! Pinned blocks that are freed before anything else happens: each is pinned, or cut, for one copy or for none.

use super::{Examples, Finding, Watch};
use crate::advise::world::{Counts, World};
use crate::show;
use pinbuddy_events::{Item, Op};

/// Fewer, less, or a smaller part of what is requested, is not worth a word.
const LEAST: (u64, u64) = (64, 64 << 20);
const PART: u64 = 4;

#[derive(Default)]
pub(super) struct Brief {
    requests: u64,
    requested: u64,
    /// The last request, if nothing but uses of its block came since.
    last: Option<u64>,
    count: u64,
    unused: u64,
    bytes: u64,
    examples: Examples,
}

impl Brief {
    pub(super) fn new(counts: &Counts) -> Self {
        Self {
            requests: counts.requests,
            ..Self::default()
        }
    }
}

impl Watch for Brief {
    fn see(&mut self, item: &Item, world: &World) {
        match item.event.op {
            Op::Request { id, bytes, .. } => {
                self.requested = self.requested.saturating_add(bytes);
                self.last = Some(id);
            }
            Op::Free { id, .. } if self.last == Some(id) => {
                self.last = None;
                self.count += 1;
                self.bytes = self.bytes.saturating_add(item.bytes);
                if let Some(block) = world.live.get(&id) {
                    self.unused += u64::from(block.stream.is_none());
                    self.examples.add(block.line);
                }
            }
            Op::Use { id, .. } if self.last == Some(id) => {}
            // What the allocator does meanwhile.
            Op::Wait { .. }
            | Op::Safe { .. }
            | Op::SegmentAlloc { .. }
            | Op::SegmentFree { .. }
            | Op::Node { .. } => {}
            _ => self.last = None,
        }
    }

    fn finding(&mut self, _world: &World) -> Option<Finding> {
        let little = self.count < LEAST.0 || self.bytes < LEAST.1;
        if little || self.bytes < self.requested / PART {
            return None;
        }
        Some(Finding {
            id: "pinned_and_freed_at_once",
            what: "Pinned memory is freed as soon as it was taken",
            evidence: format!(
                "{} of {}, {} in all, before anything else happened; {} of them no stream used",
                self.count,
                show::count(self.requests, "request"),
                show::bytes(self.bytes),
                self.unused,
            ),
            count: self.count,
            bytes: self.bytes,
            lines: self.examples.0.clone(),
            to_do: "pin once and copy from there with non_blocking=True: memory that is pinned for one copy is first copied \
                    to by the processor, which takes longer than a copy that is not pinned saves"
                .to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{MIB, Program};
    use super::*;

    /// A block that is used and stays, and a hundred, each freed when `between` is done.
    fn program(between: &dyn Fn(&mut Program, u64), bytes: u64) -> Option<Finding> {
        let mut program = Program::default();
        let kept = program.alloc(bytes);
        program.copy(kept, 1);
        for _ in 0..100 {
            let block = program.alloc(bytes);
            between(&mut program, block);
            program.free(block);
        }
        program.finding("pinned_and_freed_at_once", Default::default())
    }

    #[test]
    fn blocks_that_live_for_a_copy_or_for_nothing_are_found() {
        let used = program(&|it, block| it.copy(block, 1), 2 * MIB).unwrap();
        assert_eq!((used.count, used.bytes), (100, 200 * MIB));
        insta::assert_snapshot!(used.evidence, @"100 of 101 requests, 200.00 MiB in all, before anything else happened; 0 of them no stream used");
        let unused = program(&|_, _| {}, 2 * MIB).unwrap();
        insta::assert_snapshot!(unused.evidence, @"100 of 101 requests, 200.00 MiB in all, before anything else happened; 100 of them no stream used");
        assert_eq!(unused.lines[..2], [3, 5]);
    }

    #[test]
    fn blocks_that_live_across_anything_else_and_small_ones_are_not() {
        let other = |it: &mut Program, _| {
            let other = it.alloc(MIB / 8);
            it.free(other);
        };
        assert_eq!(program(&other, 2 * MIB), None);
        assert_eq!(program(&|it, _| it.iteration(), 2 * MIB), None);
        assert_eq!(program(&|_, _| {}, MIB / 2), None);
    }
}
