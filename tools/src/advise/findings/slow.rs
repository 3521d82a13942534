//! Blocks that wait long for a stream after they were freed: memory that serves nobody meanwhile.
//!
//! An allocator looks at its streams when it is asked, so how long a block waited is counted in requests to its allocator.
//! What is never safe is another finding.

use std::collections::{BTreeMap, HashMap};

use super::{Finding, Seen, Watch};
use crate::advise::world::{Block, World};
use crate::flow::Beside;
use crate::show;
use pinbuddy_events::{Item, Op};

/// A block that waits while its allocator is asked so often waits long.
const LONG: u64 = 8;

/// It is worth a word if so many blocks, and so many bytes at once, wait long; and one part of the largest live set.
const LEAST: (u64, u64) = (16, 64 << 20);
const PART: u64 = 4;

pub(super) struct Slow {
    beside: Beside,
    /// Requests so far, to pinbuddy and to PyTorch's own lists.
    asked: [u64; 2],
    /// Freed and not safe: the block, when it was freed, and the requests so far.
    pending: HashMap<u64, (Block, Item, u64)>,
    /// Those that waited long: the block, and between which lines.
    waited: Vec<(Block, u64, u64)>,
    /// Microseconds of the one that waited longest.
    longest: u64,
}

impl Slow {
    /// Requests below the threshold are PyTorch's.
    pub(super) fn new(threshold: u64) -> Self {
        Self { beside: Beside::new(threshold), asked: [0; 2], pending: HashMap::new(), waited: Vec::new(), longest: 0 }
    }

    /// The most bytes that waited long at once.
    fn most(&self) -> u64 {
        let ends = |it: &(Block, u64, u64)| [(it.1, true, it.0.bytes), (it.2, false, it.0.bytes)];
        let mut ends: Vec<(u64, bool, u64)> = self.waited.iter().flat_map(ends).collect();
        ends.sort_unstable();
        let (mut now, mut most) = (0_u64, 0);
        for (_, begins, bytes) in ends {
            now = if begins { now + bytes } else { now - bytes };
            most = now.max(most);
        }
        most
    }
}

impl Watch for Slow {
    fn see(&mut self, item: &Item, world: &World) {
        let allocator = usize::from(self.beside.has(item));
        match item.event.op {
            Op::Request { .. } => self.asked[allocator] += 1,
            Op::Free { id, pending: true, .. } => {
                if let Some(block) = world.live.get(&id) {
                    self.pending.insert(id, (*block, *item, self.asked[allocator]));
                }
            }
            Op::Safe { id, .. } => {
                let Some((block, freed, asked)) = self.pending.remove(&id) else {
                    return;
                };
                if self.asked[allocator] - asked >= LONG {
                    self.waited.push((block, freed.line, item.line));
                    self.longest = self.longest.max(item.at().saturating_sub(freed.at()));
                }
            }
            _ => {}
        }
    }

    fn finding(&mut self, world: &World) -> Option<Finding> {
        let (count, most) = (self.waited.len() as u64, self.most());
        if count < LEAST.0 || most < LEAST.1 || most < world.counts.largest_live / PART {
            return None;
        }
        let mut streams: BTreeMap<u32, u64> = BTreeMap::new();
        for stream in self.waited.iter().filter_map(|it| it.0.stream) {
            *streams.entry(stream).or_default() += 1;
        }
        let slowest = streams.into_iter().max_by_key(|it| it.1);
        let named = slowest.map(|(stream, blocks)| format!("; {blocks} of them for stream {stream}"));
        let mut seen = Seen::default();
        for it in &self.waited {
            seen.add(it.1, 0);
        }
        seen.bytes = most;
        Some(seen.found(
            "waits_long_for_a_stream",
            "Freed memory waits long for a stream, and serves no request meanwhile",
            format!(
                "{} waited while {LONG} or more requests were served, up to {}, {} at once{}; at most {} live in all",
                show::count(count, "block"),
                show::time(self.longest),
                show::bytes(most),
                named.unwrap_or_default(),
                show::bytes(world.counts.largest_live),
            ),
            "wait for the copies or collectives of a stream before much more is queued on it, and free what they have \
                    used last, so that it serves the next ones",
        ))
    }
}
