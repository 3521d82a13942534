//! `report`, as a user starts it: the page, and what other programs get.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

use pinbuddy_events::trace::Header;
use pinbuddy_events::{Op, Whose};
use pinbuddy_snapshot::Snapshot;
use serde_json::Value;
use tempfile::TempDir;

use crate::started;
use started::{data, report};

fn trace(folder: &TempDir, name: &str, steps: u32) -> PathBuf {
    started::trace(folder.path(), name, steps, &Header::default())
}

#[test]
fn a_page_is_one_file_beside_the_trace() {
    let folder = TempDir::new().unwrap();
    let file = trace(&folder, "variable-lengths", 4);
    let (path, page) = report(&file, &[]);
    assert_eq!(path, folder.path().join("variable-lengths.report.html"));
    let page = String::from_utf8(page).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    for outside in [
        "http:", "https:", "src=", "href=", "@import", "url(", "fetch(", "{{",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn limits_of_the_run_are_in_its_report() {
    let folder = TempDir::new().unwrap();
    let settings = [("BUDDY_MAX_MB".to_owned(), 3000.into())];
    let header = Header {
        group_limit: Some(4 << 30),
        settings: settings.into_iter().collect(),
        ..Header::default()
    };
    let file = started::trace(folder.path(), "tensors-155", 1, &header);
    let data = data(&file, &["--time-limit", "0"]);
    assert_eq!(data["budget"], 3000_u64 << 20);
    assert_eq!(data["group_limit"], 4_u64 << 30);
}

#[test]
fn nodes_are_there_where_the_trace_has_them() {
    let folder = TempDir::new().unwrap();
    let node = |at, node, pinned, used| {
        format!(
            "{{\"t\":{at},\"op\":\"node\",\"node\":{node},\"pinned\":{pinned},\"used\":{used}}}\n"
        )
    };
    let said = [node(1, 1, 70, 9), node(2, 0, 30, 30), node(3, 1, 60, 20)].concat();
    let text = format!(
        "{{\"format\":\"pinbuddy-trace\",\"version\":6}}\n{{\"t\":1,\"op\":\"alloc\",\"id\":1,\"bytes\":9}}\n{said}"
    );
    let file = PathBuf::from(started::file(&folder, "nodes.jsonl", text));
    let nodes = &data(&file, &["--time-limit", "0"])["nodes"];
    let of =
        |it: &Value| ["node", "peak_pinned", "peak_used"].map(|name| it[name].as_u64().unwrap());
    let nodes = nodes.as_array().unwrap();
    assert_eq!(
        nodes.iter().map(of).collect::<Vec<_>>(),
        [[0, 30, 30], [1, 70, 20]]
    );
    assert_eq!(nodes[1]["at_end"], serde_json::json!([60, 20]));
    let other = data(&trace(&folder, "tensors-155", 1), &["--time-limit", "0"]);
    assert_eq!(other["nodes"], serde_json::json!([]));
}

#[test]
fn what_is_drawn_agrees_with_what_is_advised() {
    let folder = TempDir::new().unwrap();
    let file = trace(&folder, "tensors-155", 4);
    let other = trace(&folder, "variable-lengths", 4);
    let compare = other.display().to_string();
    let data = data(&file, &["--compare", &compare]);
    let greatest = |curve: &Value| {
        let sums = curve["high"].as_array().unwrap().iter().scan(0, |sum, it| {
            *sum += it.as_i64().unwrap();
            Some(*sum)
        });
        sums.max().unwrap()
    };
    assert_eq!(data["requests"], 620);
    assert_eq!(greatest(&data["live"]), data["peak"].as_i64().unwrap());
    assert_eq!(data["peak"], data["advice"]["counts"]["largest_live"]);
    let choices = data["advice"]["choices"].as_array().unwrap();
    for it in data["allocators"].as_array().unwrap() {
        assert_eq!(
            greatest(&it["pinned"]),
            it["peak"].as_i64().unwrap(),
            "{}",
            it["name"]
        );
        if let Some(choice) = choices.iter().find(|choice| choice["name"] == it["name"]) {
            assert_eq!(it["peak"], choice["pinned"], "{}", it["name"]);
            assert_eq!(it["waited"], choice["waits"], "{}", it["name"]);
        }
        let elsewhere = &it["map"]["elsewhere"];
        assert!(elsewhere.is_null() || elsewhere == 0 || it["name"] == "a plan");
    }
    let lab = data["lab"]["tried"].as_array().unwrap();
    let usual = lab.iter().find(|it| {
        it["block_mb"] == 1024
            && it["count"].is_null()
            && it["threshold_mb"] == 4
            && it["exact"] == false
    });
    let pinbuddy = &data["allocators"][2];
    assert_eq!(pinbuddy["name"], "pinbuddy");
    assert_eq!(
        usual.unwrap()["peak"],
        pinbuddy["peak"],
        "the defaults of the laboratory"
    );
    assert_eq!(data["compare"]["requests"], 4 * 18);
}

#[test]
fn no_two_blocks_of_a_map_overlap() {
    let folder = TempDir::new().unwrap();
    let data = data(&trace(&folder, "kv-cache", 30), &[]);
    let numbers = |it: &Value| -> Vec<i64> {
        it.as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_i64().unwrap())
            .collect()
    };
    let sums = |it: &Value| {
        let mut sum = 0;
        numbers(it)
            .iter()
            .map(|it| {
                sum += it;
                sum
            })
            .collect::<Vec<_>>()
    };
    let blocks = &data["blocks"];
    let (from, bytes) = (sums(&blocks["from"]), numbers(&blocks["bytes"]));
    let (freed, until) = (numbers(&blocks["freed"]), numbers(&blocks["until"]));
    let end = |i: usize| match (freed[i], until[i]) {
        (freed, until) if freed >= 0 && until >= 0 => from[i] + freed + until,
        _ => i64::MAX,
    };
    let mut compared = 0;
    for it in data["allocators"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| !it["map"].is_null())
    {
        let places = sums(&it["map"]["blocks"]);
        let mut live: Vec<usize> = Vec::new();
        for i in (0..from.len()).filter(|i| places[*i] > 0) {
            live.retain(|it| end(*it) > from[i]);
            for other in &live {
                let apart = places[*other] + bytes[*other] <= places[i]
                    || places[i] + bytes[i] <= places[*other];
                assert!(apart, "{}: blocks {other} and {i}", it["name"]);
                compared += 1;
            }
            live.push(i);
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn other_programs_get_every_block() {
    let folder = TempDir::new().unwrap();
    let file = trace(&folder, "data-loader", 20);
    let (path, csv) = report(&file, &["--format", "csv"]);
    assert_eq!(path, folder.path().join("data-loader.blocks.csv"));
    let lines = String::from_utf8(csv).unwrap();
    let data = data(&file, &[]);
    let requests = data["requests"].as_u64().unwrap() as usize;
    assert_eq!(lines.lines().count(), requests + 1);

    let (_, events) = report(&file, &["--format", "perfetto"]);
    let events: Value = serde_json::from_slice(&events).unwrap();
    let events = events["traceEvents"].as_array().unwrap();
    let begins = |name: &str| events.iter().filter(|it| it["ph"] == name).count();
    assert_eq!(begins("b"), begins("e"));
    assert!(begins("b") >= requests && begins("C") > 0);

    let (path, _) = report(&file, &["--format", "snapshot"]);
    let snapshot = Snapshot::read(BufReader::new(File::open(&path).unwrap())).unwrap();
    let allocations = snapshot
        .events(Whose::Device(0))
        .filter(|it| matches!(it.op, Op::Request { .. }))
        .count();
    assert_eq!(allocations, requests);
}

/// A snapshot as PyTorch would write it, in which each request is asked for by one of two functions.
#[test]
fn a_snapshot_with_stacks_says_who_asked() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("stacks.pickle");
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../rust-core/snapshot/tests/generate.py");
    let mut made = Command::new("python3");
    made.arg(script).arg(&file).args(["4", "900"]);
    assert!(made.status().unwrap().success());
    let data = data(&file, &[]);
    let who = &data["who"];
    let blocks = who["blocks"].as_array().unwrap();
    assert_eq!(blocks.len() as u64, data["requests"].as_u64().unwrap());
    let third = blocks[2].as_u64().unwrap() as usize - 1;
    assert_eq!(
        who["stacks"][third],
        "function_212, /somewhere/model.py:212\nalloc, /somewhere/model.py"
    );
    other_programs_get_stacks(&file);
    // Seven places, in no segment that was recorded, at the addresses that the file has.
    let lay = &data["as_recorded"];
    let mut places: Vec<String> = (0..7_u64)
        .map(|it| format!("{:#x}", (1_u64 << 63) + (it << 20)))
        .collect();
    places.sort_unstable();
    let found = lay["address"].as_array().unwrap().iter();
    let found: Vec<&str> = found.map(|it| it.as_str().unwrap()).collect();
    assert_eq!(found, places);
    assert_eq!(lay["map"]["elsewhere"], 0);
    assert_eq!(
        lay["map"]["blocks"].as_array().unwrap().len() as u64,
        data["requests"].as_u64().unwrap()
    );
    // Equal ones are there once.
    let mut stacks: Vec<&str> = who["stacks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    let all = stacks.len();
    stacks.sort_unstable();
    stacks.dedup();
    assert!(stacks.len() == all && all < blocks.len(), "{all}");
    let total = |it: &Value| it["total"].as_u64().unwrap();
    let at_peak = who["at_peak"].as_array().unwrap();
    assert_eq!(
        at_peak.iter().map(total).sum::<u64>(),
        data["peak"].as_u64().unwrap()
    );
}

/// The third request's, as the file has it.
fn other_programs_get_stacks(file: &Path) {
    let calls = [
        "function_212 (/somewhere/model.py:212)",
        "alloc (/somewhere/model.py)",
    ];
    let (_, csv) = report(file, &["--format", "csv"]);
    let csv = String::from_utf8(csv).unwrap();
    assert!(csv.lines().next().unwrap().ends_with(",stack"));
    let third = csv.lines().nth(3).unwrap();
    assert!(
        third.ends_with(&format!(",\"{}\"", calls.join("; "))),
        "{third}"
    );

    let (_, events) = report(file, &["--format", "perfetto"]);
    let events: Value = serde_json::from_slice(&events).unwrap();
    let mut events = events["traceEvents"].as_array().unwrap().iter();
    let third = events.find(|it| it["ph"] == "b" && it["id"] == 2).unwrap();
    assert_eq!(third["args"]["stack"], serde_json::json!(calls));

    let (path, _) = report(file, &["--format", "snapshot"]);
    let snapshot = Snapshot::read(BufReader::new(File::open(&path).unwrap())).unwrap();
    let third = snapshot
        .stacks_of_requests(Whose::Device(0))
        .nth(2)
        .unwrap();
    let read: Vec<_> = snapshot.stacks.calls(third.unwrap()).collect();
    let read: Vec<_> = read
        .iter()
        .map(|it| (it.function, it.file, it.line))
        .collect();
    let file = "/somewhere/model.py";
    assert_eq!(read, [("function_212", file, 212), ("alloc", file, 0)]);
}
