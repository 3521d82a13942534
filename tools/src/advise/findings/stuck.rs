//! Blocks that were freed and were never safe again: a stream that does not complete keeps them.
//!
//! An allocator looks at its streams when it is asked for memory. A block whose allocator was not asked any more says
//! nothing of its stream.

use std::collections::{BTreeMap, HashMap};

use super::{Finding, Watch};
use crate::advise::world::{Block, Counts, World};
use crate::flow::Beside;
use crate::show;
use pinbuddy_events::{Item, Op};

pub(super) struct Stuck {
    events: u64,
    lost: u64,
    beside: Beside,
    /// The line of the last request to each allocator: to pinbuddy, and to PyTorch's own lists.
    asked: [u64; 2],
    /// Freed and not safe: the block, the line of its free, and whose it is.
    pending: HashMap<u64, (Block, u64, usize)>,
}

/// Fewer, or less, may be the end of the recording.
const LEAST: (u64, u64) = (4, 1 << 20);

impl Stuck {
    pub(super) fn new(counts: &Counts) -> Self {
        Self {
            events: counts.events,
            lost: counts.lost,
            beside: Beside::new(counts.threshold),
            asked: [0; 2],
            pending: HashMap::new(),
        }
    }
}

impl Watch for Stuck {
    fn see(&mut self, item: &Item, world: &World) {
        let allocator = usize::from(self.beside.has(item));
        match item.event.op {
            Op::Request { .. } => self.asked[allocator] = item.line,
            Op::Free {
                id, pending: true, ..
            } => {
                if let Some(block) = world.live.get(&id) {
                    self.pending.insert(id, (*block, item.line, allocator));
                }
            }
            Op::Safe { id, .. } => {
                self.pending.remove(&id);
            }
            _ => {}
        }
    }

    fn finding(&mut self, _world: &World) -> Option<Finding> {
        // What was freed shortly before its allocator was last asked may be safe now.
        let late = self.asked.map(|it| it.saturating_sub(self.events / 4));
        let is_stuck = |it: &&(Block, u64, usize)| it.1 <= late[it.2];
        let known = self.pending.values().filter(is_stuck);
        let late = known.clone().map(|it| late[it.2]).max().unwrap_or(0);
        let mut stuck: Vec<(u64, Block)> = known.map(|it| (it.1, it.0)).collect();
        stuck.sort_unstable_by_key(|it| it.0);
        let bytes: u64 = stuck.iter().map(|it| it.1.bytes).sum();
        let count = stuck.len() as u64;
        // Each dropped event may have been one that said so.
        if count < LEAST.0.max(self.lost.saturating_mul(2)) || bytes < LEAST.1 {
            return None;
        }
        let mut streams: BTreeMap<u32, u64> = BTreeMap::new();
        for stream in stuck.iter().filter_map(|it| it.1.stream) {
            *streams.entry(stream).or_default() += 1;
        }
        let named: Vec<String> = streams
            .iter()
            .take(4)
            .map(|(stream, blocks)| format!("stream {stream} has {blocks}"))
            .collect();
        let named = if named.is_empty() {
            String::new()
        } else {
            format!("; {}", named.join(", "))
        };
        Some(Finding {
            id: "a_stream_never_completes",
            what: "Freed memory that no request can have, since a stream that used it never completes",
            evidence: format!(
                "{}, {} in all, freed before line {late} and not safe by the end{named}",
                show::count(count, "block"),
                show::bytes(bytes),
            ),
            count,
            bytes,
            lines: stuck.iter().take(5).map(|it| it.0).collect(),
            to_do: "look for work on that stream that waits for something that never comes (an unmatched collective or \
                    event), or for a free inside a graph's capture"
                .to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{MIB, Program, recorded};
    use crate::input::About;

    fn program(safe: &dyn Fn(u32) -> bool) -> Program {
        let mut program = Program::default();
        for number in 0..100 {
            let block = program.alloc(2 * MIB);
            program.copy(block, number % 2);
            program.free(block);
            if safe(number) {
                program.safe(block);
            }
        }
        program
    }

    #[test]
    fn blocks_that_are_never_safe_are_found_with_their_stream() {
        let found =
            program(&|it| it % 2 == 0 || it < 50).finding("a_stream_never_completes", recorded());
        let found = found.unwrap();
        insta::assert_snapshot!(found.evidence, @"11 blocks, 22.00 MiB in all, freed before line 280 and not safe by the end; stream 1 has 11");
        assert_eq!(found.lines.len(), 5);
    }

    /// examples/offload.py: PyTorch's allocator is not asked again after the only small step.
    #[test]
    fn blocks_whose_allocator_was_not_asked_again_say_nothing() {
        let program = |again: bool| {
            let mut program = Program::default();
            for number in 0..100 {
                let bytes = if (20..30).contains(&number) || again && number == 99 {
                    2 * MIB
                } else {
                    8 * MIB
                };
                let block = program.alloc(bytes);
                program.copy(block, 0);
                program.free(block);
                if bytes > 4 * MIB {
                    program.safe(block);
                }
            }
            program.finding("a_stream_never_completes", recorded())
        };
        assert_eq!(program(false), None);
        assert_eq!(program(true).map(|it| it.count), Some(10));
    }

    #[test]
    fn the_last_ones_are_not_nor_those_of_a_trace_that_was_made_up() {
        assert_eq!(
            program(&|it| it < 90).finding("a_stream_never_completes", recorded()),
            None
        );
        let made_up = program(&|_| false).finding("a_stream_never_completes", About::default());
        assert_eq!(made_up, None);
    }
}
