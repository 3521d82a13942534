//! What is known of a program at a moment of its trace, and what there is in the whole of it.

use std::collections::HashMap;
use std::ops::Range;

use anyhow::Result;
use serde::Serialize;

use pinbuddy_events::{Item, MICROSECOND, Op};

use crate::input::Input;
use crate::waited::Waited;

/// Thresholds whose largest live sets are counted, in MiB.
pub(super) const THRESHOLDS_MB: [u64; 3] = [1, 4, 16];

/// What there is in a trace. Sizes are in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Events, or lines.
    pub events: u64,
    /// Requests.
    pub requests: u64,
    /// Those at or above the threshold.
    pub requests_above: u64,
    /// The threshold.
    pub threshold: u64,
    /// Ends of iterations.
    pub iterations: u64,
    /// Blocks that were freed.
    pub frees: u64,
    /// Uses on streams.
    pub uses: u64,
    /// Events that were dropped while they were recorded.
    pub lost: u64,
    /// How often the run itself waited for the driver; none where the file does not say.
    pub waited: Option<Waited>,
    /// The most that was live at once.
    pub largest_live: u64,
    /// The same of requests of at least 1, 4 and 16 MiB.
    #[serde(skip)]
    pub(super) largest_above: [u64; 3],
}

/// The thresholds that a request is at or above.
fn thresholds_up_to(bytes: u64) -> Range<usize> {
    0..THRESHOLDS_MB.partition_point(|least| least << 20 <= bytes)
}

/// Passes over a trace once.
pub(super) fn count(input: &Input, threshold: u64) -> Result<Counts> {
    let mut counts = Counts { threshold, waited: input.about.waits.then(Waited::default), ..Counts::default() };
    let (mut live, mut above) = (0_u64, [0_u64; 3]);
    input.each(&mut |item| {
        counts.events = item.line;
        match item.event.op {
            Op::Request { bytes, .. } => {
                counts.requests += 1;
                counts.requests_above += u64::from(bytes >= threshold);
                live += bytes;
                counts.largest_live = counts.largest_live.max(live);
                for at in thresholds_up_to(bytes) {
                    above[at] += bytes;
                    counts.largest_above[at] = counts.largest_above[at].max(above[at]);
                }
            }
            Op::Free { .. } => counts.frees += 1,
            Op::Use { .. } => counts.uses += 1,
            Op::Iteration => counts.iterations += 1,
            Op::Wait { took, .. } => {
                let waited = counts.waited.get_or_insert_default();
                waited.add(took / MICROSECOND);
            }
            Op::Lost { events } => counts.lost = counts.lost.saturating_add(events),
            _ => {}
        }
        // As in replays.
        if let Op::Free { .. } | Op::Safe { .. } = item.event.op
            && item.block.is_some()
        {
            live -= item.bytes;
            for at in thresholds_up_to(item.bytes) {
                above[at] -= item.bytes;
            }
        }
        Ok(())
    })?;
    Ok(counts)
}

/// A block that is live.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) bytes: u64,
    /// Of its request.
    pub(super) line: u64,
    /// The stream that used it last.
    pub(super) stream: Option<u32>,
}

/// What is so at a moment, before the event that comes next.
#[derive(Debug, Default)]
pub(super) struct World {
    /// Of the whole trace.
    pub(super) counts: Counts,
    pub(super) live: HashMap<u64, Block>,
    pub(super) live_bytes: u64,
    pub(super) iterations: u64,
    pub(super) line: u64,
}

impl World {
    /// The beginning of a trace with these counts.
    pub(super) fn of(counts: Counts) -> Self {
        Self { counts, ..Self::default() }
    }

    pub(super) fn see(&mut self, item: &Item) {
        let line = item.line;
        self.line = line;
        match item.event.op {
            Op::Request { id, bytes, .. } => {
                self.live_bytes += bytes;
                let stream = None;
                let block = Block { bytes, line, stream };
                self.live.insert(id, block);
            }
            Op::Free { id, .. } => {
                self.live_bytes -= item.bytes;
                self.live.remove(&id);
            }
            Op::Use { id, stream, .. } => {
                if let Some(block) = self.live.get_mut(&id) {
                    block.stream = Some(stream);
                }
            }
            Op::Iteration => self.iterations += 1,
            _ => {}
        }
    }
}
