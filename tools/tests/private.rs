//! Requests of private pools, as those of a graph's capture: no plan serves them, so each comparison has them on both sides or
//! on none.

use serde_json::Value;

use crate::started;
use started::{Lines, file, json};

/// Twenty steps of a block of 10 MiB, and of one of 100 MiB of a private pool.
fn trace() -> String {
    let mut lines = Lines::with_head(r#""version":4,"torch":"2.15.0+cu132""#);
    for step in 0..20_u64 {
        let (t, own, private) = (step * 100, 2 * step, 2 * step + 1);
        lines.alloc(t, own, 10 << 20);
        let fields = [("id", private), ("bytes", 100 << 20), ("private", 1)];
        lines.put(t, "alloc", &fields);
        lines.free(t + 50, own);
        lines.free(t + 50, private);
        lines.iter(t + 60);
    }
    lines.0
}

#[test]
fn private_memory_counts_for_a_plan_as_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = &file(&folder, "run.jsonl", trace());
    let advice = json(&["advise", file, "--json"]);
    let choices = advice["choices"].as_array().unwrap();
    let is_plan = |it: &&Value| it["name"].as_str().unwrap().contains("a plan of");
    let plan = choices.iter().find(is_plan);
    let pinned = plan.unwrap()["pinned"].as_u64().unwrap();
    assert!(pinned >= 110 << 20, "{pinned}");
    let planned = json(&["plan", file, "--json"]);
    assert_eq!(planned["requests"], 20);
    assert_eq!(planned["stock"]["peak"], 16 << 20);
}
