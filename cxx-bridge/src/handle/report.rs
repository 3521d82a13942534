//! Reports on the engine for people and programs: as JSON, in one line, and part by part. Sizes are in
//! bytes; names are those of the statistics.

use pinbuddy_core::{BlockView, Gauge, Progress, Region, SegmentKind, SegmentView, Stats};
use serde_json::{Value, json};

use super::{Handle, Part};
use crate::backing::{Memory, Placement};
use crate::budget::Budget;
use crate::log::Bytes;

impl<M: Memory> Handle<M> {
    /// The engine's counters.
    pub fn stats(&self) -> Option<Stats> {
        self.cell
            .guarded(|| Some(self.cell.provisioner()?.engine().stats()))
    }

    /// Resets the counters' peaks.
    pub fn reset_peaks(&self) {
        self.cell.guarded(|| {
            self.cell.provisioner()?.engine_mut().reset_peaks();
            Some(())
        });
    }

    /// Resets the counters' totals.
    pub fn reset_accumulated(&self) {
        self.cell.guarded(|| {
            self.cell.provisioner()?.engine_mut().reset_accumulated();
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
        let engine = self.cell.guarded(|| {
            let provisioner = self.cell.provisioner()?;
            let engine = provisioner.engine();
            let views: Vec<SegmentView> = engine.segments().collect();
            Some((engine.stats(), views))
        });
        let (stats, views) = engine.map_or((None, Vec::new()), |(it, views)| (Some(it), views));
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
            "budget": self.pinner.decided_budget().map(|Budget { bytes, why }| {
                json!({ "bytes": bytes, "why": why })
            }),
            "engine": stats.as_ref().map(counters),
            "segments": views.iter().zip(&placements).map(segment).collect::<Vec<_>>(),
        })
    }

    /// Each segment with its blocks. O(granules): for people and snapshots.
    pub fn segments(&self) -> Value {
        let segments = self.cell.guarded(|| {
            let provisioner = self.cell.provisioner()?;
            let engine = provisioner.engine();
            let with_blocks = engine.segments().map(|view| {
                let blocks = engine.blocks(view.id).into_iter().flatten();
                (view, blocks.collect::<Vec<_>>())
            });
            Some(with_blocks.unzip())
        });
        let (views, blocks): (Vec<SegmentView>, Vec<Vec<BlockView>>) = segments.unwrap_or_default();
        let placements = self.placements(&views);
        let with_blocks = |(of, blocks): ((&SegmentView, &Placement), Vec<BlockView>)| {
            let block = |it: &BlockView| {
                let state = if it.pending { "pending" } else { "live" };
                json!({ "offset": it.offset, "bytes": it.bytes, "state": state })
            };
            let mut value = segment(of);
            value["blocks"] = blocks.iter().map(block).collect();
            value
        };
        views
            .iter()
            .zip(&placements)
            .zip(blocks)
            .map(with_blocks)
            .collect()
    }

    /// Every pinned byte, as blocks and the free parts between them.
    pub fn parts(&self) -> Vec<Part> {
        let parts = self.cell.guarded(|| {
            let provisioner = self.cell.provisioner()?;
            let engine = provisioner.engine();
            let mut parts = Vec::new();
            for view in engine.segments() {
                let mut end = 0;
                let mut push = |from: usize, to: usize, live: bool, pending: bool| {
                    if from < to {
                        parts.push(Part {
                            address: view.base + from,
                            bytes: to - from,
                            live,
                            pending,
                        });
                    }
                };
                for block in engine.blocks(view.id).into_iter().flatten() {
                    push(end, block.offset, false, false);
                    end = block.offset + block.bytes;
                    push(block.offset, end, !block.pending, block.pending);
                }
                push(end, view.bytes, false, false);
            }
            Some(parts)
        });
        parts.unwrap_or_default()
    }

    /// The engine's state in one line, for the end of an error message.
    pub fn state_line(&self) -> String {
        let Some(stats) = self.stats() else {
            return format!("pinbuddy: the engine is {}", self.state());
        };
        let budget = self.pinner.quota().budget().bytes as u64;
        format!(
            "pinbuddy: {} pinned ({} live, {} pending, {} idle, the longest free run {}); segments: \
             {}; budget: {}; warm-up: {}",
            Bytes(stats.pinned_bytes.current),
            Bytes(stats.active_bytes.current - stats.pending_bytes.current),
            Bytes(stats.pending_bytes.current),
            Bytes(stats.idle_bytes),
            Bytes(stats.largest_free_run_bytes),
            stats.segments.current,
            Bytes(budget),
            self.progress().map_or("done", |it| it.phase),
        )
    }

    /// Progress of the warm-up; `None` after a panic under the lock.
    pub(super) fn progress(&self) -> Option<Progress> {
        Some(self.cell.even_if_retired()?.progress())
    }

    /// The placement of each of these; asks the kernel, so not under the engine's lock.
    fn placements(&self, views: &[SegmentView]) -> Vec<Placement> {
        let region = |it: &SegmentView| Region {
            base: it.base,
            bytes: it.bytes,
        };
        let regions: Vec<Region> = views.iter().map(region).collect();
        self.pinner.memory.placements(&regions)
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

fn counters(stats: &Stats) -> Value {
    json!({
        "pinned_bytes": gauge(&stats.pinned_bytes),
        "segments": gauge(&stats.segments),
        "active_bytes": gauge(&stats.active_bytes),
        "active_blocks": gauge(&stats.active_blocks),
        "pending_bytes": gauge(&stats.pending_bytes),
        "pending_blocks": gauge(&stats.pending_blocks),
        "idle_bytes": stats.idle_bytes,
        "dedicated_bytes": stats.dedicated_bytes,
        "largest_free_run_bytes": stats.largest_free_run_bytes,
        "hits": stats.hits,
        "misses": stats.misses,
    })
}

fn segment((segment, placement): (&SegmentView, &Placement)) -> Value {
    json!({
        "address": segment.base,
        "bytes": segment.bytes,
        "kind": kind(segment.kind),
        "free_bytes": segment.free_bytes + segment.tail_bytes,
        "live_blocks": segment.live_blocks,
        "live_bytes": segment.live_bytes,
        "pending_blocks": segment.pending_blocks,
        "pending_bytes": segment.pending_bytes,
        "largest_free_run_bytes": segment.longest_free_run_bytes,
        "backing": placement.backing,
        "page_bytes": placement.page_bytes,
        "huge_bytes": placement.huge_bytes,
        "numa_node": placement.numa_node,
    })
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
