//! How searches for plans end, and what is said meanwhile.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use pinbuddy_plan::Block;
use pinbuddy_replay::workload::Random;
use serde_json::Value;

use crate::started;
use started::{Lines, command, file, json, trace};

/// Blocks of any lengths, too many to be searched exactly, and none of which leaves a gap that others fill: some per cent above the
/// lower bound nothing better is found, and nothing says that there is none.
fn hard() -> Vec<Block> {
    let mut random = Random::new(7);
    let mut below = |end: u64| random.draw() % end;
    let block = |_| {
        let (lower, length, size) = (below(600), 4 + below(196), 64 * (1 + below(2000)));
        Block { lower, upper: lower + length, size }
    };
    (0..1500).map(block).collect()
}

/// Interrupts a search once it has said how far it is; what it says then.
fn interrupted(arguments: &[&str]) -> Value {
    let mut child = command()
        .args(arguments)
        .args(["--time-limit", "500", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let far = lines.map_while(Result::ok).find(|it| it.contains(", efficiency 0.") && it.contains("; Ctrl-C ends it"));
    assert!(far.is_some(), "it never said how far it is");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["ended"], "interrupted", "{said}");
    said
}

#[test]
fn an_interrupt_keeps_the_best_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = "id,lower,upper,size\n".to_owned();
    for (id, it) in hard().iter().enumerate() {
        table += &format!("{id},{},{},{}\n", it.lower, it.upper, it.size);
    }
    let path = file(&folder, "hard.csv", &table);
    let said = interrupted(&["plan", "--instance", &path]);
    let gap = said["gap_percent"].as_f64().unwrap();
    assert!(gap > 0.0 && gap < 50.0, "{said}");
}

#[test]
fn the_search_for_a_plan_of_a_trace_says_how_far_it_is_and_keeps_the_best_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = hard();
    let mut order = Vec::new();
    for (id, it) in blocks.iter().enumerate() {
        order.extend([(it.lower, true, id), (it.upper, false, id)]);
    }
    order.sort_unstable();
    let mut lines = Lines::default();
    for iteration in 0..4 {
        for (_, begins, block) in &order {
            let id = (iteration * blocks.len() + block) as u64;
            match begins {
                true => lines.alloc(1, id, blocks[*block].size << 12),
                false => lines.free(1, id),
            }
        }
        lines.iter(1);
    }
    let path = file(&folder, "hard.jsonl", lines.0);
    let said = interrupted(&["plan", &path]);
    let efficiency = said["efficiency"].as_f64().unwrap();
    assert!(efficiency > 0.66 && efficiency < 1.0, "{said}");
    assert!(said["slots"].as_u64().unwrap() > 1000, "{said}");
}

#[test]
fn what_ends_by_itself_is_optimal_only_if_no_plan_pins_less() {
    let folder = tempfile::tempdir().unwrap();
    for (name, steps, limit, ended) in [
        ("variable-lengths", 6, "500", "done"),
        ("variable-lengths", 6, "0", "time_limit"),
        ("fixed-129.5mib", 1, "500", "optimal"),
        ("fixed-129.5mib", 1, "0", "optimal"),
    ] {
        let trace = trace(&folder, name, steps);
        let said = json(&["plan", &trace, "--json", "--time-limit", limit]);
        assert_eq!(said["ended"], ended, "{said}");
        let is_full = said["efficiency"].as_f64() == Some(1.0);
        assert_eq!(is_full, ended == "optimal", "{said}");
    }
}
