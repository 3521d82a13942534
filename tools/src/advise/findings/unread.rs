//! Pinned memory that no stream ever used: pinned for nothing, or copied in a way that waits.

use super::{Examples, Finding, Watch};
use crate::advise::world::{Counts, World};
use crate::show;
use pinbuddy_events::{Item, Op};

#[derive(Default)]
pub(super) struct Unread {
    events: u64,
    requests: u64,
    requested: u64,
    count: u64,
    bytes: u64,
    largest: u64,
    examples: Examples,
}

/// Fewer, or less, is not worth a word.
const LEAST: (u64, u64) = (8, 16 << 20);

impl Unread {
    pub(super) fn new(counts: &Counts) -> Self {
        Self {
            events: counts.events,
            requests: counts.requests,
            ..Self::default()
        }
    }

    fn add(&mut self, line: u64, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.largest = self.largest.max(bytes);
        self.examples.add(line);
    }
}

impl Watch for Unread {
    fn see(&mut self, item: &Item, world: &World) {
        match item.event.op {
            Op::Request { bytes, .. } => self.requested = self.requested.saturating_add(bytes),
            Op::Free { id, .. } => {
                if let Some(block) = world.live.get(&id)
                    && block.stream.is_none()
                {
                    self.add(block.line, block.bytes);
                }
            }
            _ => {}
        }
    }

    fn finding(&mut self, world: &World) -> Option<Finding> {
        // What lived for half of the trace without being used is not about to be.
        let mut old: Vec<(u64, u64)> = world
            .live
            .values()
            .filter(|it| it.stream.is_none() && it.line <= self.events / 2)
            .map(|it| (it.line, it.bytes))
            .collect();
        old.sort_unstable();
        for (line, bytes) in old {
            self.add(line, bytes);
        }
        if self.count < LEAST.0 || self.bytes < LEAST.1 || self.bytes < self.requested / 10 {
            return None;
        }
        Some(Finding {
            id: "never_used_by_a_stream",
            what: "Pinned memory that no stream ever uses",
            evidence: format!(
                "{} of {}, {} in all, the largest of {}",
                self.count,
                show::count(self.requests, "request"),
                show::bytes(self.bytes),
                show::bytes(self.largest),
            ),
            count: self.count,
            bytes: self.bytes,
            lines: self.examples.0.clone(),
            to_do: "copy it with non_blocking=True, which is what pinned memory is for; if it is not copied at all, do not \
                    pin it"
                .to_owned(),
        })
    }
}
