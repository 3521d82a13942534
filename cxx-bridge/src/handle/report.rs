//! Reports on the engine for people and programs: as JSON, in one line, and part by part. Sizes are in
//! bytes; names are those of the statistics.

use std::ops::Range;

use pinbuddy_core::{BlockView, Gauge, Home, Progress, Region, SegmentKind, SegmentView, Stats};
use serde_json::{Value, json};

use super::{Handle, planned};
use crate::backing::{Memory, Placement};
use crate::budget::Budget;
use crate::ffi::Part;
use crate::log::Bytes;

impl<M: Memory> Handle<M> {
    /// The engine's counters.
    pub fn stats(&self) -> Option<Stats> {
        let engine = || Some(self.cell.provisioner()?.engine().stats());
        let stats = self.cell.guarded(engine)?;
        Some(match &self.planned {
            Some(planned) => stats.and(planned.stats()),
            None => stats,
        })
    }

    /// Resets the counters' peaks.
    pub fn reset_peaks(&self) {
        self.cell.guarded(|| {
            self.cell.provisioner()?.engine_mut().reset_peaks();
            self.planned.as_ref()?.reset_peaks();
            Some(())
        });
    }

    /// Resets the counters' totals.
    pub fn reset_accumulated(&self) {
        self.cell.guarded(|| {
            self.cell.provisioner()?.engine_mut().reset_accumulated();
            self.planned.as_ref()?.reset_accumulated();
            Some(())
        });
    }

    /// The counters, the segments, the state of the warm-up and the budget.
    pub fn report(&self) -> Value {
        let state = self.state();
        if state == "forked" {
            // A thread of the parent may hold any lock.
            return json!({ "state": state, "segments": [] });
        }
        let stats = self.stats();
        let views: Vec<Seen> = self.seen(false).into_iter().map(|(seen, _)| seen).collect();
        let placements = self.placements(&views);
        let progress = self.progress();
        json!({
            "state": state,
            "warm_up": {
                "mode": self.config.warm_up.value,
                "phase": progress.map_or("done", |it| it.phase),
                "pinned": progress.map_or(0, |it| it.pinned),
                "owed": progress.map_or(0, |it| it.deficit),
                "stopped": self.notices.why_stopped(),
            },
            "budget": self.pinner.decided_budget().map(|Budget { bytes, why, .. }| {
                json!({ "bytes": bytes, "why": why })
            }),
            "engine": stats.as_ref().map(counters),
            "plan": self.planned.as_ref().map(|it| plan(&it.show())),
            "segments": views.iter().zip(&placements).map(|it| self.segment(it)).collect::<Vec<_>>(),
        })
    }

    /// Each segment with its blocks. O(granules): for people and snapshots.
    pub fn segments(&self) -> Value {
        let (views, blocks): (Vec<Seen>, Vec<Vec<BlockView>>) = self.seen(true).into_iter().unzip();
        let placements = self.placements(&views);
        let with_blocks = |(of, blocks): ((&Seen, &Placement), Vec<BlockView>)| {
            let block = |it: &BlockView| {
                let state = if it.pending { "pending" } else { "live" };
                json!({ "offset": it.offset, "bytes": it.bytes, "state": state })
            };
            let mut value = self.segment(of);
            value["blocks"] = blocks.iter().map(block).collect();
            value
        };
        views.iter().zip(&placements).zip(blocks).map(with_blocks).collect()
    }

    /// Every pinned byte, as blocks and the free parts between them.
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for (seen, blocks) in self.seen(true) {
            let mut end = 0;
            let mut push = |from: usize, to: usize, live: bool, pending: bool| {
                if from < to {
                    parts.push(Part { address: seen.base + from, bytes: to - from, live, pending });
                }
            };
            for block in blocks {
                push(end, block.offset, false, false);
                end = block.offset + block.bytes;
                push(block.offset, end, !block.pending, block.pending);
            }
            push(end, seen.bytes, false, false);
        }
        parts
    }

    /// The engine's segments and the plan's regions; if asked for, with their blocks by offset.
    fn seen(&self, with_blocks: bool) -> Vec<(Seen, Vec<BlockView>)> {
        let engines = self.cell.guarded(|| {
            let provisioner = self.cell.provisioner()?;
            let engine = provisioner.engine();
            let seen = engine.segments().map(|view| {
                let blocks = with_blocks.then(|| engine.blocks(view.id)).flatten();
                (Seen::of(&view), blocks.into_iter().flatten().collect())
            });
            Some(seen.collect())
        });
        let mut seen: Vec<(Seen, Vec<BlockView>)> = engines.unwrap_or_default();
        if let Some(planned) = self.planned.as_ref().filter(|_| !self.cell.is_off()) {
            seen.extend(planned.show().regions.into_iter().map(Seen::planned));
        }
        seen
    }

    /// The engine's state in one line, for the end of an error message.
    pub fn state_line(&self) -> String {
        let Some(stats) = self.stats() else {
            return format!("pinbuddy: the engine is {}", self.state());
        };
        let budget = self.pinner.quota().budget();
        format!(
            "pinbuddy: {} pinned ({} live, {} pending, {} idle, the longest free run {}); segments: \
             {}; budget: {}, {}; warm-up: {}",
            Bytes(stats.pinned_bytes.current),
            Bytes(stats.active_bytes.current - stats.pending_bytes.current),
            Bytes(stats.pending_bytes.current),
            Bytes(stats.idle_bytes),
            Bytes(stats.largest_free_run_bytes),
            stats.segments.current,
            Bytes(budget.bytes as u64),
            budget.why,
            self.progress().map_or("done", |it| it.phase),
        )
    }

    /// Progress of the warm-up; `None` after a panic under the lock.
    pub(super) fn progress(&self) -> Option<Progress> {
        Some(self.cell.even_if_retired()?.progress())
    }

    /// The placement of each of these; asks the kernel, so not under the engine's lock.
    fn placements(&self, views: &[Seen]) -> Vec<Placement> {
        let region = |it: &Seen| Region { base: it.base, bytes: it.bytes };
        let regions: Vec<Region> = views.iter().map(region).collect();
        self.pinner.memory.placements(&regions)
    }

    fn segment(&self, (segment, placement): (&Seen, &Placement)) -> Value {
        json!({
            "address": segment.base,
            "bytes": segment.bytes,
            "kind": segment.kind,
            "free_bytes": segment.free_bytes,
            "live_blocks": segment.live_blocks,
            "live_bytes": segment.live_bytes,
            "pending_blocks": segment.pending_blocks,
            "pending_bytes": segment.pending_bytes,
            "largest_free_run_bytes": segment.longest_free_run_bytes,
            "backing": placement.backing,
            "page_bytes": placement.page_bytes,
            "huge_bytes": placement.huge_bytes,
            "numa_node": placement.numa_node,
            "home_node": self.node_at(segment.home),
        })
    }

    /// `on`, `off` (BUDDY_DISABLE), `retired` or `forked`.
    fn state(&self) -> &'static str {
        if self.cell.is_child() {
            "forked"
        } else if self.config.disable.value {
            "off"
        } else if self.stats().is_none() {
            "retired"
        } else {
            "on"
        }
    }
}

fn plan(shown: &planned::Shown) -> Value {
    let counts = shown.counts;
    json!({
        "pinned": shown.whole,
        "hits": counts.hits,
        "misses": counts.misses,
        "unplanned": counts.unplanned,
        "drift": counts.drift,
        "resyncs": counts.resyncs,
        "given_up": counts.given_up,
        "borrowed": counts.borrowed,
    })
}

fn counters(stats: &Stats) -> Value {
    json!({
        "pinned_bytes": gauge(&stats.pinned_bytes),
        "segments": gauge(&stats.segments),
        "active_bytes": gauge(&stats.active_bytes),
        "active_blocks": gauge(&stats.active_blocks),
        "pending_bytes": gauge(&stats.pending_bytes),
        "pending_blocks": gauge(&stats.pending_blocks),
        "idle_bytes": stats.idle_bytes,
        "returned_bytes": stats.returned_bytes,
        "dedicated_bytes": stats.dedicated_bytes,
        "largest_free_run_bytes": stats.largest_free_run_bytes,
        "hits": stats.hits,
        "misses": stats.misses,
    })
}

/// A pinned region, the engine's or a plan's.
#[derive(Debug)]
struct Seen {
    base: usize,
    bytes: usize,
    kind: &'static str,
    home: Home,
    free_bytes: usize,
    live_blocks: usize,
    live_bytes: usize,
    pending_blocks: usize,
    pending_bytes: usize,
    longest_free_run_bytes: usize,
}

impl Seen {
    fn of(it: &SegmentView) -> Self {
        Self {
            base: it.base,
            bytes: it.bytes,
            kind: kind(it.kind),
            home: it.home,
            free_bytes: it.free_bytes + it.tail_bytes,
            live_blocks: it.live_blocks,
            live_bytes: it.live_bytes,
            pending_blocks: it.pending_blocks,
            pending_bytes: it.pending_bytes,
            longest_free_run_bytes: it.longest_free_run_bytes,
        }
    }

    fn planned((at, parts): (Range<usize>, Vec<planned::Part>)) -> (Self, Vec<BlockView>) {
        let bytes = at.end - at.start;
        let sum = |pending| {
            let parts = parts.iter().filter(move |it| it.pending == pending);
            parts.fold((0, 0), |(blocks, bytes), it| (blocks + 1, bytes + it.bytes))
        };
        let ((live_blocks, live_bytes), (pending_blocks, pending_bytes)) = (sum(false), sum(true));
        let ends = [0].into_iter().chain(parts.iter().map(|it| it.offset + it.bytes));
        let begins = parts.iter().map(|it| it.offset).chain([bytes]);
        let seen = Self {
            base: at.start,
            bytes,
            kind: "planned",
            home: Home::default(),
            free_bytes: bytes - live_bytes - pending_bytes,
            live_blocks,
            live_bytes,
            pending_blocks,
            pending_bytes,
            longest_free_run_bytes: ends.zip(begins).map(|(end, begin)| begin - end).max().unwrap_or(0),
        };
        let block = |it: &planned::Part| BlockView { offset: it.offset, bytes: it.bytes, pending: it.pending };
        (seen, parts.iter().map(block).collect())
    }
}

fn kind(kind: SegmentKind) -> &'static str {
    match kind {
        SegmentKind::Idle => "idle",
        SegmentKind::Small => "small",
        SegmentKind::Large => "large",
        _ => "dedicated",
    }
}

fn gauge(gauge: &Gauge) -> Value {
    json!({
        "current": gauge.current,
        "peak": gauge.peak,
        "allocated": gauge.allocated,
        "freed": gauge.freed,
    })
}
