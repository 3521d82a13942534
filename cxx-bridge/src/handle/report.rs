//! The engine's counters and segments as JSON: sizes in bytes, names as in the statistics.

use pinbuddy_core::{Gauge, SegmentView, Stats};
use serde_json::{Value, json};

pub(super) fn stats(stats: &Stats) -> Value {
    json!({
        "pinned_bytes": gauge(&stats.pinned_bytes),
        "segments": gauge(&stats.segments),
        "live_bytes": gauge(&stats.live_bytes),
        "live_blocks": gauge(&stats.live_blocks),
        "pending_bytes": gauge(&stats.pending_bytes),
        "pending_blocks": gauge(&stats.pending_blocks),
        "idle_bytes": stats.idle_bytes,
        "largest_free_run_bytes": stats.largest_free_run_bytes,
        "hits": stats.hits,
        "misses": stats.misses,
    })
}

pub(super) fn segment(segment: &SegmentView) -> Value {
    json!({
        "address": segment.base,
        "bytes": segment.bytes,
        "free_bytes": segment.free_bytes,
        "live_blocks": segment.live_blocks,
        "live_bytes": segment.live_bytes,
        "pending_blocks": segment.pending_blocks,
        "pending_bytes": segment.pending_bytes,
        "largest_free_run_bytes": segment.longest_free_run_bytes,
    })
}

fn gauge(gauge: &Gauge) -> Value {
    json!({
        "current": gauge.current,
        "peak": gauge.peak,
        "allocated": gauge.allocated,
        "freed": gauge.freed,
    })
}
