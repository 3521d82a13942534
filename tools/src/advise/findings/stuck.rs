//! Blocks that were freed and were never safe again: a stream that does not complete keeps them.
//!
//! An allocator looks at its streams when it is asked for memory. A block whose allocator was not asked any more says
//! nothing of its stream.

use std::collections::{BTreeMap, HashMap};

use super::{Finding, Seen, Watch};
use crate::advise::world::{Block, World};
use crate::flow::Beside;
use crate::show;
use pinbuddy_events::{Item, Op};

pub(super) struct Stuck {
    beside: Beside,
    /// The line of the last request to each allocator: to pinbuddy, and to PyTorch's own lists.
    asked: [u64; 2],
    /// Freed and not safe: the block, the line of its free, and whose it is.
    pending: HashMap<u64, (Block, u64, usize)>,
}

/// Fewer, or less, may be the end of the recording.
const LEAST: (u64, u64) = (4, 1 << 20);

impl Stuck {
    /// Requests below the threshold are PyTorch's.
    pub(super) fn new(threshold: u64) -> Self {
        Self { beside: Beside::new(threshold), asked: [0; 2], pending: HashMap::new() }
    }
}

impl Watch for Stuck {
    fn see(&mut self, item: &Item, world: &World) {
        let allocator = usize::from(self.beside.has(item));
        match item.event.op {
            Op::Request { .. } => self.asked[allocator] = item.line,
            Op::Free { id, pending: true, .. } => {
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

    fn finding(&mut self, world: &World) -> Option<Finding> {
        // What was freed shortly before its allocator was last asked may be safe now.
        let late = self.asked.map(|it| it.saturating_sub(world.counts.events / 4));
        let is_stuck = |it: &&(Block, u64, usize)| it.1 <= late[it.2];
        let known = self.pending.values().filter(is_stuck);
        let late = known.clone().map(|it| late[it.2]).max().unwrap_or(0);
        let mut stuck: Vec<(u64, Block)> = known.map(|it| (it.1, it.0)).collect();
        stuck.sort_unstable_by_key(|it| it.0);
        let mut seen = Seen::default();
        for (line, it) in &stuck {
            seen.add(*line, it.bytes);
        }
        // Each dropped event may have been one that said so.
        if seen.count < LEAST.0.max(world.counts.lost.saturating_mul(2)) || seen.bytes < LEAST.1 {
            return None;
        }
        let mut streams: BTreeMap<u32, u64> = BTreeMap::new();
        for stream in stuck.iter().filter_map(|it| it.1.stream) {
            *streams.entry(stream).or_default() += 1;
        }
        let named: Vec<String> =
            streams.iter().take(4).map(|(stream, blocks)| format!("stream {stream} has {blocks}")).collect();
        let named = if named.is_empty() { String::new() } else { format!("; {}", named.join(", ")) };
        Some(seen.found(
            "a_stream_never_completes",
            "Freed memory that no request can have, since a stream that used it never completes",
            format!(
                "{}, {} in all, freed before line {late} and not safe by the end{named}",
                show::count(seen.count, "block"),
                show::bytes(seen.bytes),
            ),
            "look for work on that stream that waits for something that never comes (an unmatched collective or \
                    event), or for a free inside a graph's capture",
        ))
    }
}
