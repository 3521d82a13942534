//! Requests of private pools, as those of a graph's capture: no plan serves them, so each comparison has them on both sides or
//! on none.

use crate::started;
use started::{file, json};

/// Twenty steps of a block of 10 MiB, and of one of 100 MiB of a private pool.
fn trace() -> String {
    let mut lines =
        vec!["{\"format\":\"pinbuddy-trace\",\"version\":4,\"torch\":\"2.15.0+cu132\"}".to_owned()];
    let mib = 1_u64 << 20;
    for step in 0..20_u64 {
        let (t, own, private) = (step * 100, 2 * step, 2 * step + 1);
        lines.push(format!(
            "{{\"t\":{t},\"op\":\"alloc\",\"id\":{own},\"bytes\":{}}}",
            10 * mib
        ));
        lines.push(format!(
            "{{\"t\":{t},\"op\":\"alloc\",\"id\":{private},\"bytes\":{},\"private\":1}}",
            100 * mib
        ));
        lines.push(format!("{{\"t\":{},\"op\":\"free\",\"id\":{own}}}", t + 50));
        lines.push(format!(
            "{{\"t\":{},\"op\":\"free\",\"id\":{private}}}",
            t + 50
        ));
        lines.push(format!("{{\"t\":{},\"op\":\"iter\"}}", t + 60));
    }
    lines.join("\n") + "\n"
}

#[test]
fn private_memory_counts_for_a_plan_as_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = &file(&folder, "run.jsonl", trace());
    let advice = json(&["advise", file, "--json"]);
    let choices = advice["choices"].as_array().unwrap();
    let plan = choices
        .iter()
        .find(|it| it["name"].as_str().unwrap().contains("a plan of"));
    let pinned = plan.unwrap()["pinned"].as_u64().unwrap();
    assert!(pinned >= 110 << 20, "{pinned}");
    let planned = json(&["plan", file, "--json"]);
    assert_eq!(planned["requests"], 20);
    assert_eq!(planned["stock"]["peak"], 16 << 20);
}
